//go:build unix

// Package watchdog removes what a test process leaves behind when it dies
// without a chance to do so itself (SIGKILL, a panic, os.Exit).
//
// The watchdog is a small sh child in a session of its own, which no Ctrl-C
// reaches, holding the read end of a pipe whose write end only this process
// has. Everything to tidy up is written to the pipe as soon as it exists. When
// the pipe closes the child does its work. See watchdog.sh for the lines.
package watchdog

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/proc"
)

//go:embed watchdog.sh
var script string

const shell = "/bin/sh"

// Dog is a running watchdog.
type Dog struct {
	cmd *exec.Cmd

	mu   sync.Mutex // protects pipe
	pipe *os.File
}

// New starts a watchdog. It must be ended by Dismiss or Release.
func New() (*Dog, error) {
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	answer, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	pipe, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	d := &Dog{cmd: cmd, pipe: pipe}
	if line, err := bufio.NewReader(answer).ReadString('\n'); line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("watchdog: have answer %q (%w), want \"ready\"", line, err), d.Release())
	}
	return d, nil
}

// start starts a command and returns the end of its standard input.
func start(cmd *exec.Cmd) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Hold has a command, when it is started, keep the watchdog from its work until
// the command has ended: for one that makes what the watchdog is to remove, and
// that goes on when this process dies. It must come to an end by itself.
func (d *Dog) Hold(cmd *exec.Cmd) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cmd.ExtraFiles = append(cmd.ExtraFiles, d.pipe)
}

// GuardDir has a directory removed, with all in it.
func (d *Dog) GuardDir(path string) error { return d.tell("dir", path) }

// GuardCommand has a shell command run, after processes were ended and before
// directories are removed.
func (d *Dog) GuardCommand(command string) error { return d.tell("run", command) }

// Guard has a process ended and returns its full name.
func (d *Dog) Guard(pid int) (proc.ID, error) {
	p, err := proc.Get(pid)
	if err != nil {
		return proc.ID{}, fmt.Errorf("watchdog: process %d: %w", pid, err)
	}
	return p.ID, d.tell("pid", p.String())
}

func (d *Dog) tell(kind, what string) error {
	if strings.ContainsAny(what, "\n\x00") {
		return fmt.Errorf("watchdog: %s %q holds a line break", kind, what)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := io.WriteString(d.pipe, kind+" "+what+"\n"); err != nil {
		return fmt.Errorf("watchdog: %s %s: %w", kind, what, err)
	}
	return nil
}

// gate lets a command begin only when told to.
const gate = `read -r go || exit 1; exec "$0" "$@" </dev/null`

// Start starts a command like cmd.Start, with nothing on its standard input,
// such that it never runs unguarded: a shell waits on a pipe until the watchdog
// has its process id, then becomes the command. Should this process die in
// between, the shell sees the pipe close and ends.
func (d *Dog) Start(cmd *exec.Cmd) (proc.ID, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return proc.ID{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer w.Close()
	cmd.Args = append([]string{shell, "-c", gate, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Stdin = shell, r
	err = cmd.Start()
	r.Close()
	if err != nil {
		return proc.ID{}, fmt.Errorf("start %s: %w", cmd.Args[3], err)
	}
	id, err := d.open(cmd, w)
	if err != nil {
		w.Close()
		return proc.ID{}, errors.Join(err, cmd.Wait())
	}
	return id, nil
}

// open guards a command and opens its gate.
func (d *Dog) open(cmd *exec.Cmd, gate io.Writer) (proc.ID, error) {
	id, err := d.Guard(cmd.Process.Pid)
	if err != nil {
		return id, err
	}
	_, err = io.WriteString(gate, "go\n")
	return id, err
}

// Dismiss ends the watchdog without any tidying and waits for it.
func (d *Dog) Dismiss() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := io.WriteString(d.pipe, "done\n")
	return errors.Join(err, d.join())
}

// Release lets the watchdog do its work now and waits for it.
func (d *Dog) Release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.join()
}

func (d *Dog) join() error {
	d.pipe.Close()
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	return nil
}
