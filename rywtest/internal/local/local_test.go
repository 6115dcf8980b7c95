//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

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

func open(t *testing.T, spec backend.Spec) *Backend {
	t.Helper()
	b, err := Open(within(t, patience), spec)
	must(t, err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.(*Backend)
}

// seeded returns a node with a database, not running.
func seeded(t *testing.T, b *Backend, name string) *Node {
	t.Helper()
	n, err := b.NewNode(within(t, patience), name)
	must(t, err)
	must(t, b.Seed(within(t, patience), n))
	must(t, n.Configure(within(t, patience), backend.Config{Settings: map[string]string{"fsync": "off"}}))
	return n.(*Node)
}

func TestPortTakenBeforeTheFirstStartIsReplaced(t *testing.T) {
	b := open(t, backend.Spec{Partitionable: true})
	n := seeded(t, b, "a")
	taken := n.Admin()
	listener, err := net.Listen("tcp", taken.String())
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	must(t, n.Start(within(t, patience)))
	if n.Admin() == taken {
		t.Fatalf("the server claims to listen on %v, where the test does", taken)
	}
	for _, at := range []backend.Endpoint{n.Admin(), n.Client()} {
		conn, err := net.Dial("tcp", at.String())
		must(t, err)
		conn.Close()
	}
}

func TestPortTakenWhileStoppedIsWaitedFor(t *testing.T) {
	b := open(t, backend.Spec{})
	n := seeded(t, b, "a")
	must(t, n.Start(within(t, patience)))
	at := n.Admin()
	must(t, n.Shutdown(within(t, patience), backend.Fast))
	listener, err := net.Listen("tcp", at.String())
	must(t, err)
	freed := time.AfterFunc(500*time.Millisecond, func() { _ = listener.Close() })
	defer freed.Stop()
	must(t, n.Start(within(t, patience)))
	if n.Admin() != at {
		t.Errorf("have address %v, want %v as before", n.Admin(), at)
	}
	must(t, n.Shutdown(within(t, patience), backend.Fast))
	held, err := net.Listen("tcp", at.String())
	must(t, err)
	defer func() { must(t, held.Close()) }()
	err = n.Start(within(t, 2*time.Second))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "could not bind") {
		t.Errorf("have error %v, want the context's and PostgreSQL's", err)
	}
}

func TestFolderOfClustersMayBeRelative(t *testing.T) {
	parent, err := os.MkdirTemp("/tmp", "rywtest-relative-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	must(t, os.Chmod(parent, 0o755)) // servers of root run as another user
	t.Chdir(filepath.Dir(parent))
	t.Setenv(DirEnvVar, filepath.Base(parent))
	b := open(t, backend.Spec{})
	if filepath.Dir(b.base) != parent {
		t.Fatalf("have cluster %s, want it below %s", b.base, parent)
	}
	must(t, seeded(t, b, "a").Start(within(t, patience)))
}

func TestKillLeavesNoLockFilesAndNoSharedMemory(t *testing.T) {
	b := open(t, backend.Spec{})
	n := seeded(t, b, "a")
	must(t, n.Start(within(t, patience)))
	var key, segment int
	_, err := fmt.Sscan(n.pidFile()[6], &key, &segment)
	must(t, err)
	if !segmentExists(segment) {
		t.Fatalf("no shared memory segment %d while running", segment)
	}
	must(t, n.Kill(within(t, patience)))
	if segmentExists(segment) {
		t.Errorf("shared memory segment %d is still there", segment)
	}
	if n.pidFile() != nil {
		t.Error("postmaster.pid is still there")
	}
	if left, _ := filepath.Glob(filepath.Join(b.sockets, ".s.*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	must(t, n.Start(within(t, patience)))
}

func segmentExists(id int) bool {
	_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &unix.SysvShmDesc{})
	return err == nil
}

func TestKillProcessIsForChildrenOnly(t *testing.T) {
	b := open(t, backend.Spec{})
	n := seeded(t, b, "a")
	if err := n.KillProcess(within(t, patience), os.Getpid()); !errors.Is(err, backend.ErrNotRunning) {
		t.Errorf("have %v, want ErrNotRunning", err)
	}
	must(t, n.Start(within(t, patience)))
	if err := n.KillProcess(within(t, patience), os.Getpid()); err == nil {
		t.Error("a process that is not the server's was accepted") // and this one is dead
	}
}

func TestRunningServerIsNotReconfigured(t *testing.T) {
	b := open(t, backend.Spec{})
	n := seeded(t, b, "a")
	must(t, n.Start(within(t, patience)))
	for what, err := range map[string]error{
		"Configure": n.Configure(within(t, patience), backend.Config{}),
		"Wipe":      n.Wipe(within(t, patience)),
		"Start":     n.Start(within(t, patience)),
	} {
		if !errors.Is(err, backend.ErrRunning) {
			t.Errorf("%s: have %v, want ErrRunning", what, err)
		}
	}
}

func TestRun(t *testing.T) {
	b := open(t, backend.Spec{})
	n := seeded(t, b, "a")
	err := n.Run(within(t, patience), "pg_rewind", "--no-such-option")
	if err == nil || !strings.Contains(err.Error(), "pg_rewind: exit status 1") || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("have error %v, want the program's own words", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := n.Run(ctx, "postgres", "-D", n.dir); !errors.Is(err, context.Canceled) {
		t.Errorf("have error %v, want the context's", err)
	}
	must(t, b.Close())
	if err := n.Run(context.Background(), "pg_rewind", "--version"); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("have error %v, want ErrClosed", err)
	}
}

// Several processes that need the same template make it once: the others wait.
func TestTemplateIsMadeOnce(t *testing.T) {
	t.Setenv(CacheEnvVar, t.TempDir())
	paths := make([]string, 3)
	err := backend.Each([]int{0, 1, 2}, func(i int) error {
		b, err := Open(within(t, patience), backend.Spec{})
		if err != nil {
			return err
		}
		paths[i], err = b.(*Backend).template(within(t, 2*patience))
		return errors.Join(err, b.Close())
	})
	must(t, err)
	if slices.Compact(slices.Clone(paths))[0] != paths[2] || len(slices.Compact(slices.Clone(paths))) != 1 {
		t.Errorf("have templates %v, want one", paths)
	}
	entries, err := os.ReadDir(filepath.Dir(paths[0]))
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("have %v, want a template and its lock", entries)
	}
}

func TestRemovedTemplateIsMadeAnew(t *testing.T) {
	t.Setenv(CacheEnvVar, t.TempDir())
	b := open(t, backend.Spec{})
	path, err := b.template(within(t, patience))
	must(t, err)
	other := filepath.Join(filepath.Dir(path), "other")
	must(t, os.WriteFile(other, nil, 0o600))
	must(t, RemoveTemplates(within(t, patience)))
	if exists(path) || !exists(other) {
		t.Errorf("have the template: %v, want it gone; have another file: %v, want it there", exists(path), exists(other))
	}
	_, err = b.template(within(t, patience))
	must(t, err)
}

func TestTemplateKeyDependsOnWhatMatters(t *testing.T) {
	key := func(spec backend.Spec) string { return (&Backend{spec: spec}).templateKey() }
	plain := key(backend.Spec{})
	if key(backend.Spec{Settings: map[string]string{"work_mem": "5MB"}}) != plain {
		t.Error("a setting that no data directory records asks for another template")
	}
	if key(backend.Spec{Settings: map[string]string{"max_connections": "20"}}) == plain {
		t.Error("a recorded setting does not ask for another template")
	}
	if key(backend.Spec{InitArgs: []string{"--wal-segsize=1"}}) == plain {
		t.Error("an argument of initdb does not ask for another template")
	}
}

func TestForeignTempCacheIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := tempCacheDir()
	must(t, err)
	again, err := tempCacheDir()
	if err != nil || again != dir {
		t.Errorf("have %q (%v), want %q again", again, err, dir)
	}
	must(t, os.Chmod(dir, 0o755))
	if _, err := tempCacheDir(); err == nil || !strings.Contains(err.Error(), CacheEnvVar) {
		t.Errorf("have error %v for a directory that others can enter, want one naming %s", err, CacheEnvVar)
	}
}

func TestEnvironmentDropsWhatPostgresHeeds(t *testing.T) {
	have := environment([]string{"PATH=/bin", "PGDATA=/x", "PGOPTIONS=-c x", "LANG=de_DE", "LC_TIME=de_DE", "LANGUAGE=de", "HOME=/h"})
	if want := []string{"LC_ALL=C", "PATH=/bin", "HOME=/h"}; !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}

func TestCopyTree(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	sizes := map[string]int{"empty": 0, "small": 10, "sub/one block": block, "sub/odd": 3*block + 17}
	must(t, os.Mkdir(filepath.Join(src, "sub"), 0o700))
	for name, size := range sizes {
		must(t, os.WriteFile(filepath.Join(src, name), []byte(strings.Repeat("x", size)), 0o600))
	}
	holes := make([]byte, 5*block+100)
	holes[2*block+5] = 'y' // zeros before, around and after
	must(t, os.WriteFile(filepath.Join(src, "holes"), holes, 0o600))
	sizes["holes"] = len(holes)
	var me account
	must(t, me.copyTree(context.Background(), src, dst))
	for name, size := range sizes {
		want, err := os.ReadFile(filepath.Join(src, name))
		must(t, err)
		have, err := os.ReadFile(filepath.Join(dst, name))
		must(t, err)
		if string(have) != string(want) {
			t.Errorf("%s, %d bytes: the copy of %d bytes differs", name, size, len(have))
		}
	}
	if err := me.copyTree(context.Background(), src, dst); !errors.Is(err, os.ErrExist) {
		t.Errorf("have %v, want an error for files that exist", err)
	}
	must(t, os.Symlink("/", filepath.Join(src, "link")))
	if err := me.copyTree(context.Background(), src, t.TempDir()); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("have %v, want an error for a link", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := me.copyTree(ctx, src, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want the context's error", err)
	}
}

func TestControlFileWithoutChecksumIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pg_control")
	must(t, os.WriteFile(path, []byte(strings.Repeat("x", 8192)), 0o600))
	if err := patchControl(path, 1); err == nil {
		t.Error("a file without a checksum was changed")
	}
}

func TestReach(t *testing.T) {
	dir := t.TempDir() // of this user, closed to others
	must(t, os.Chmod(dir, 0o700))
	other := account{name: "somebody", uid: os.Getuid() + 12345, drop: true}
	if err := other.reach(filepath.Join(dir, "x")); err == nil || !strings.Contains(err.Error(), DirEnvVar) {
		t.Errorf("have error %v, want one that says what to do", err)
	}
	me := account{uid: os.Getuid()}
	must(t, me.reach(filepath.Join(dir, "x")))
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(path, []byte(strings.Repeat("a", 20<<10)+"end"), 0o600))
	if have := tail(path, 0); len(have) != 16<<10 || !strings.HasSuffix(have, "aend") {
		t.Errorf("have %d bytes, want the last 16 KiB", len(have))
	}
	if have := tail(path, 20<<10); have != "end" {
		t.Errorf("have %q, want what was added", have)
	}
	if have := tail(path+"x", 0); !strings.Contains(have, "no such file") {
		t.Errorf("have %q, want the reason", have)
	}
}
