//go:build linux || darwin

package local

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that servers run as. PostgreSQL refuses to run as root,
// so root hands over to postgres or, without one, to nobody.
type account struct {
	name     string
	uid, gid int
	drop     bool
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "this user", uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return parseAccount(u)
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

func parseAccount(u *user.User) (account, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, fmt.Errorf("user %s: id: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return account{}, fmt.Errorf("user %s: group: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uid, gid: gid, drop: true}, nil
}

// attributes make a child run as the account, in a process group of its own, so
// that a Ctrl-C in the terminal does not reach it.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// own gives a file to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// mkdir makes a directory of the account that nobody else can enter.
func (a account) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return a.own(path)
}

// reach reports a folder above path that the account may not pass.
func (a account) reach(path string) error {
	for dir := filepath.Dir(path); a.drop && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 && !a.owns(info) {
			return fmt.Errorf("user %s, which servers run as, cannot enter %s: set RYWTEST_DIR to a folder that it can", a.name, dir)
		}
	}
	return nil
}

func (a account) owns(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == a.uid
}

// writeFile writes a file of the account.
func (a account) writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return a.own(path)
}
