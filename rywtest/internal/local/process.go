//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/proc"
)

// process is a program that runs under the watchdog; Backend.Close joins the
// goroutine that waits for it.
type process struct {
	proc.ID
	*backend.Run // nil if it never ran
}

// launch starts a PostgreSQL program that writes to output.
func (b *Backend) launch(dir string, output *os.File, program string, args ...string) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	cmd := exec.Command(b.install.Path(program), args...)
	cmd.Dir, cmd.Env = dir, environment(os.Environ())
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = b.account.attributes()
	id, err := b.dog.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &process{ID: id, Run: backend.NewRun(&b.running, cmd.Wait)}, nil
}

// environment leaves out what would change the behaviour of PostgreSQL programs.
func environment(all []string) []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "LANG") {
			env = append(env, entry)
		}
	}
	return env
}

// run runs a program to its end and returns an error with its output if it
// fails. When the context or the back-end ends, the program is ended.
func (b *Backend) run(ctx context.Context, dir, program string, args ...string) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	output, err := os.CreateTemp(b.base, program+"-*.out")
	if err != nil {
		return err
	}
	defer func() { _, _ = output.Close(), os.Remove(output.Name()) }()
	p, err := b.launch(dir, output, program, args...)
	if err != nil {
		return err
	}
	if err := b.finish(ctx, p, program); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, tail(output.Name(), 0))
	}
	return nil
}

func (b *Backend) finish(ctx context.Context, p *process, program string) error {
	var err error
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-b.ctx.Done():
		err = context.Cause(b.ctx)
	}
	if program == "pg_basebackup" { // whose child, which receives WAL, would go on for long
		_ = syscall.Kill(-p.PID, syscall.SIGTERM) // fails only if it has ended
	}
	return errors.Join(err, p.dismiss())
}

// dismiss ends a program, and the postgres that initdb and pg_rewind run. The
// latter must come to its own end, which it does when its input ends: no signal
// makes it free its shared memory.
func (p *process) dismiss() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	err := proc.Signal(p.ID, syscall.SIGTERM)
	if poll(ctx, 5*time.Millisecond, func() (bool, error) { return !groupExists(p.PID), nil }) != nil {
		_ = syscall.Kill(-p.PID, syscall.SIGKILL) // fails only if it has ended
	}
	<-p.Done()
	return err
}

func groupExists(id int) bool { return !errors.Is(syscall.Kill(-id, 0), syscall.ESRCH) }

// stop stops the process by SIGSTOP, then its children, so that no new ones can
// appear, and returns them all once they stand still, the parent first.
func (p *process) stop(ctx context.Context) ([]proc.ID, error) {
	if err := halt(ctx, p.ID); err != nil {
		return nil, err
	}
	children, err := proc.Children(p.PID)
	if err != nil {
		return nil, err
	}
	return append([]proc.ID{p.ID}, children...), halt(ctx, children...)
}

func halt(ctx context.Context, ids ...proc.ID) error {
	for _, id := range ids {
		if err := proc.Signal(id, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := poll(ctx, time.Millisecond, func() (bool, error) { return proc.Stopped(id), nil }); err != nil {
			return fmt.Errorf("process %d does not stop: %w", id.PID, err)
		}
	}
	return nil
}

// resume lets the process and its children go on.
func (p *process) resume() error {
	children, err := proc.Children(p.PID)
	if err != nil {
		return err
	}
	for _, id := range append(children, p.ID) {
		if err := proc.Signal(id, syscall.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the process and its children at once and waits until all are gone.
// The children are not ours to wait for, but a server that is started again
// while one of them still holds shared memory refuses to run.
func (p *process) kill(ctx context.Context) error {
	family, err := p.stop(ctx)
	for _, id := range append(family, p.ID) {
		err = errors.Join(err, proc.Signal(id, syscall.SIGKILL))
	}
	if err != nil {
		return err
	}
	<-p.Done()
	for _, id := range family {
		if err := poll(ctx, time.Millisecond, func() (bool, error) { return !proc.Alive(id), nil }); err != nil {
			return fmt.Errorf("process %d does not end: %w", id.PID, err)
		}
	}
	return nil
}
