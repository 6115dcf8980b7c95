//go:build linux || darwin

package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CacheEnvVar names the folder of the templates, before the user's cache folder.
const CacheEnvVar = "RYWTEST_CACHE"

// templateFormat changes when templates are made differently.
const templateFormat = "1"

// initialConf is the postgresql.conf of initdb, which ours includes.
const initialConf = "initdb.conf"

// template returns a directory to copy, which it makes if there is none yet.
// Other processes may want the same one at the same time: one makes it, the
// others wait.
func (b *Backend) template(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, b.templateKey())
	if exists(path) {
		return path, nil
	}
	lock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(path) {
		return path, nil
	}
	return path, b.makeTemplate(ctx, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv(CacheEnvVar); dir != "" {
		return dir, os.MkdirAll(dir, 0o700)
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "rywtest")
		if err := os.MkdirAll(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	return tempCacheDir()
}

// tempCacheDir is for users without a home. Others can write to its parent, so
// it counts only if it is ours.
func tempCacheDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("rywtest-cache-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	me := account{uid: os.Geteuid()}
	if !info.IsDir() || !me.owns(info) || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s is not a private directory of this user: set %s", dir, CacheEnvVar)
	}
	return dir, nil
}

// templateKey differs for whatever makes templates differ.
func (b *Backend) templateKey() string {
	parts := slices.Concat([]string{templateFormat, b.install.Version, b.spec.Recorded()}, b.spec.InitdbArgs())
	return fmt.Sprintf("pg%d-%.8x", b.install.Major, sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}

func (b *Backend) makeTemplate(ctx context.Context, path string) error {
	dir := filepath.Join(b.base, "template")
	if err := b.initdb(ctx, dir); err != nil {
		return err
	}
	return errors.Join(b.publish(ctx, dir, path), os.RemoveAll(dir))
}

// initdb makes a database cluster. PostgreSQL in single-user mode then writes
// the recorded settings into it.
func (b *Backend) initdb(ctx context.Context, dir string) error {
	args := slices.Concat([]string{"--pgdata=" + dir}, b.spec.InitdbArgs())
	if err := b.run(ctx, b.base, "initdb", args...); err != nil {
		return err
	}
	conf := filepath.Join(dir, "postgresql.conf")
	if err := os.Rename(conf, filepath.Join(dir, initialConf)); err != nil {
		return err
	}
	if err := b.account.writeFile(conf, preface+b.spec.Recorded()); err != nil {
		return err
	}
	return b.run(ctx, dir, "postgres", "--single", "-F", "-D", dir, "postgres")
}

// publish copies a finished template into the cache, where it appears at once.
func (b *Backend) publish(ctx context.Context, dir, path string) error {
	part := randomName(filepath.Dir(path), ".part-")
	if err := b.dog.GuardDir(part); err != nil {
		return err
	}
	var me account
	err := me.mkdir(part)
	if err == nil {
		err = me.copyTree(ctx, dir, part)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return nil
}
