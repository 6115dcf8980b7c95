//go:build linux || darwin

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// portPatience is how long a node waits for its port when another program has
// taken it.
const portPatience = 10 * time.Second

// ensure makes the container if there is none and starts it if it does not run;
// n.mu is held. A port that another program has taken in the meantime is replaced
// as long as nobody knows it; otherwise it is waited for.
func (n *Node) ensure(ctx context.Context) error {
	for deadline := time.Now().Add(portPatience); ; {
		err := n.raise(ctx)
		if err == nil || !portTaken(err) {
			return err
		}
		if n.served && time.Now().After(deadline) {
			return fmt.Errorf("another program has taken port %d while the server was away: %w", n.port.Number(), err)
		}
		if e := n.evade(ctx); e != nil {
			return errors.Join(e, err)
		}
	}
}

// portTaken reports whether the engine could not publish a port: because of a
// program outside of its containers, or of one inside.
func portTaken(err error) bool {
	return says(err, "address already in use") || says(err, "port is already allocated")
}

// evade changes the port if that is possible, or waits a little; n.mu is held.
func (n *Node) evade(ctx context.Context) (err error) {
	if n.served {
		return n.b.pause(ctx, 200*time.Millisecond)
	}
	if _, err := n.b.do(ctx, "rm", "--force", "--volumes", n.container); err != nil {
		return err
	}
	n.made, n.joined = false, false
	n.port, err = backend.ReplacePort(n.port, n.in)
	return err
}

// raise does what is missing; n.mu is held.
func (n *Node) raise(ctx context.Context) error {
	if !n.made {
		err := n.b.create(ctx, "--name="+n.container, "--volume="+homeDir, "--network=bridge",
			fmt.Sprintf("--publish=127.0.0.1:%d:%d", n.port.Number(), serverPort), n.b.image)
		if err != nil {
			return err
		}
		n.made = true
	}
	if !n.joined {
		if err := n.join(ctx); err != nil {
			return err
		}
		n.joined = true
	}
	if n.up {
		return nil
	}
	if _, err := n.b.do(ctx, "start", n.container); err != nil {
		return err
	}
	n.up, n.served = true, true
	return nil
}

// join connects the container to the private network.
func (n *Node) join(ctx context.Context) error {
	_, err := n.b.do(ctx, "network", "connect", "--ip="+n.address, n.b.id, n.container)
	return err
}

// script runs a shell script in the folder that holds data, the data directory;
// n.mu is held.
func (n *Node) script(ctx context.Context, script string, args ...string) (string, error) {
	if err := n.ensure(ctx); err != nil {
		return "", err
	}
	if n.frozen {
		return "", backend.ErrFrozen
	}
	out, err := n.b.exec(ctx, n.container, append([]string{"sh", "-c", "set -e; cd " + homeDir + "; " + script, "sh"}, args...)...)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, n.quell(ctx))
	}
	return out, err
}

// quell ends what goes on in the container after its caller has given up, so that
// nothing else touches the data directory from then on; n.mu is held. A running
// server owns it, and goes on.
func (n *Node) quell(ctx context.Context) error {
	if n.alive() {
		return nil
	}
	return n.kill(context.WithoutCancel(ctx))
}
