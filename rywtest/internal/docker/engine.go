//go:build linux || darwin

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// engineTimeout bounds one command of the engine, which takes a second or two on a
// busy machine.
const engineTimeout = 45 * time.Second

// findClient returns the path of the command line.
func findClient() (string, error) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return "", fmt.Errorf("%w: the program docker was not found on the PATH (%w)", backend.ErrNoEngine, err)
	}
	return path, nil
}

// command is a call of the command line that no Ctrl-C in the terminal reaches.
func (b *Backend) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.client, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// do has the engine do something and returns what it answers, without the last line
// break. Once begun it is not cut short: the engine would go on, and Close would
// not know what to remove.
func (b *Backend) do(ctx context.Context, args ...string) (string, error) {
	if err := b.enter(ctx); err != nil {
		return "", err
	}
	defer b.running.Done()
	return b.call(context.WithoutCancel(ctx), args...)
}

// exec runs a program in a container and returns its output. It ends with the
// context or the back-end; what the program does in the container may go on.
func (b *Backend) exec(ctx context.Context, container string, program ...string) (string, error) {
	if err := b.enter(ctx); err != nil {
		return "", err
	}
	defer b.running.Done()
	ctx, stop := b.bound(ctx)
	defer stop()
	return run(ctx, b.command(ctx, append([]string{"exec", container}, program...)...))
}

// bound returns a context that also ends when the back-end is closed.
func (b *Backend) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// pause waits, or returns why waiting is no use.
func (b *Backend) pause(ctx context.Context, d time.Duration) error {
	ctx, stop := b.bound(ctx)
	defer stop()
	return backend.Pause(ctx, d)
}

// enter counts a command that Close has to wait for; b.running.Done ends it.
func (b *Backend) enter(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.running.Add(1)
	return nil
}

// call is run for commands that make or remove something. Should this process die,
// the watchdog begins when they have ended, and finds what they have made.
func (b *Backend) call(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	cmd := b.command(ctx, args...)
	b.dog.Hold(cmd)
	return run(ctx, cmd)
}

// run runs a command and returns its output.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	if err == nil {
		return strings.TrimSuffix(out.String(), "\n"), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return "", fmt.Errorf("docker %s: %w\n%s", summary(cmd.Args[1:]), err, tidy(out.String()+problem.String()))
}

// summary is the start of a command, as much as tells commands apart.
func summary(args []string) string {
	const most = 80
	text := strings.Join(args, " ")
	if line, _, cut := strings.Cut(text, "\n"); cut || len(line) > most {
		return line[:min(len(line), most)] + "…"
	}
	return text
}

func tidy(output string) string { return strings.TrimSpace(output) }

// says reports whether an error is a command's that printed a text.
func says(err error, text string) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && strings.Contains(err.Error(), text)
}
