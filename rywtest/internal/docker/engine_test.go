//go:build linux || darwin

package docker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// The tests of this file need an engine, and run where those of the kit do on it.
func open(t *testing.T, spec backend.Spec) *Backend {
	t.Helper()
	if os.Getenv("RYWTEST_BACKEND") != "docker" {
		t.Skip("RYWTEST_BACKEND is not docker")
	}
	b, err := Open(within(t, patience), spec, cmp.Or(os.Getenv("RYWTEST_IMAGE"), "postgres:17"))
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b.(*Backend)
}

const patience = time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func reserve(t *testing.T, b *Backend) *Node {
	t.Helper()
	n, err := b.NewNode(within(t, patience), "a")
	must(t, err)
	return n.(*Node)
}

func fill(t *testing.T, n *Node) {
	t.Helper()
	must(t, n.b.Seed(within(t, patience), n))
	must(t, n.Configure(within(t, patience), backend.Config{Settings: map[string]string{"fsync": "off"}}))
}

// take listens on a node's port, as another program may.
func take(t *testing.T, n *Node) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", n.Admin().String())
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener
}

func TestPortTakenBeforeTheFirstStartIsReplaced(t *testing.T) {
	n := reserve(t, open(t, backend.Spec{Partitionable: true}))
	taken := n.Admin()
	take(t, n)
	fill(t, n)
	must(t, n.Start(within(t, patience)))
	if n.Admin() == taken {
		t.Fatalf("the server claims to listen on %v, where the test does", taken)
	}
	for _, at := range []backend.Endpoint{n.Admin(), n.Client()} {
		if !listens(at.String()) {
			t.Errorf("nobody answers on %v", at)
		}
	}
}

func TestPortTakenWhileDownIsWaitedFor(t *testing.T) {
	n := reserve(t, open(t, backend.Spec{}))
	fill(t, n)
	must(t, n.Start(within(t, patience)))
	at := n.Admin()
	_, err := n.b.do(within(t, patience), "kill", n.container) // its port is free now
	must(t, err)
	must(t, n.server.Await(within(t, patience)))
	listener := take(t, n)
	freed := time.AfterFunc(500*time.Millisecond, func() { listener.Close() })
	defer freed.Stop()
	must(t, n.Start(within(t, patience)))
	if n.Admin() != at {
		t.Errorf("have address %v, want %v as before", n.Admin(), at)
	}

	_, err = n.b.do(within(t, patience), "kill", n.container)
	must(t, err)
	must(t, n.server.Await(within(t, patience)))
	take(t, n)
	err = n.Start(within(t, 3*time.Second))
	if !errors.Is(err, context.DeadlineExceeded) || !portTaken(err) {
		t.Errorf("have error %v, want the context's and the engine's", err)
	}
	begin := time.Now()
	err = n.Start(within(t, patience))
	if err == nil || !strings.Contains(err.Error(), "another program has taken port") || time.Since(begin) > 2*portPatience {
		t.Errorf("have error %v after %v, want one about the port after %v", err, time.Since(begin), portPatience)
	}
}

// What a caller has given up goes on in a container, where nobody sees it.
func TestCancelledProgramTouchesNothingAnyMore(t *testing.T) {
	n := reserve(t, open(t, backend.Spec{}))
	fill(t, n)
	must(t, n.Start(within(t, patience)))
	must(t, n.Shutdown(within(t, patience), backend.Fast))
	for what, call := range map[string]func(context.Context) error{
		"a program": func(ctx context.Context) error { return n.Run(ctx, "sh", "-c", "sleep 1; touch "+dataDir+"/late") },
		"a script": func(ctx context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			_, err := n.script(ctx, "sleep 1; touch data/late")
			return err
		},
	} {
		if err := call(within(t, 500*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: have %v, want the context's error", what, err)
		}
		_, err := n.b.exec(within(t, patience), n.container, "sh", "-c", "sleep 1.5; test ! -e "+dataDir+"/late")
		if err != nil {
			t.Errorf("%s went on after its end: %v", what, err)
		}
	}
	must(t, n.Start(within(t, patience)))
}

func TestOrphanOfATemplateIsReplaced(t *testing.T) {
	b := open(t, backend.Spec{InitArgs: []string{"--wal-segsize=2"}})
	_, err := b.do(within(t, patience), "image", "rm", b.image)
	must(t, err)
	maker := "rywtest-template-" + strings.TrimPrefix(b.image, templateName+":")
	must(t, b.create(within(t, patience), "--name="+maker, cmp.Or(os.Getenv("RYWTEST_IMAGE"), "postgres:17")))
	other := func(limit time.Duration) error {
		c, err := Open(within(t, limit), b.spec, cmp.Or(os.Getenv("RYWTEST_IMAGE"), "postgres:17"))
		if err != nil {
			return err
		}
		return c.Close()
	}
	if err := other(10 * time.Second); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), maker) {
		t.Errorf("have %v, want the context's error and the name %s", err, maker)
	}
	defer func(life time.Duration) { makerLife = life }(makerLife)
	makerLife = 0
	must(t, other(patience))
	_, err = b.do(within(t, patience), "image", "rm", b.image)
	must(t, err)
}
