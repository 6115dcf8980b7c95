//go:build linux || darwin

package rywtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// onDocker reports whether these tests run on containers.
func onDocker() bool { return os.Getenv(rywtest.EnvBackend) == string(rywtest.Docker) }

func localOnly(t *testing.T, why string) {
	t.Helper()
	if onDocker() {
		t.Skip(why)
	}
}

// engineRemains lists the containers and networks that a process has made.
func engineRemains(t *testing.T, pid int) []string {
	t.Helper()
	filter := fmt.Sprintf("--filter=label=gorm-ryw.rywtest.pid=%d", pid)
	return append(engine(t, "ps", "--all", "--quiet", filter), engine(t, "network", "ls", "--quiet", filter)...)
}

// engine returns the words that the engine answers.
func engine(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	must(t, err)
	return strings.Fields(string(out))
}

// volumes lists the volumes of a process's containers, which have no label of their
// own; none for local servers.
func volumes(t *testing.T, pid int) []string {
	t.Helper()
	if !onDocker() {
		return nil
	}
	containers := engine(t, "ps", "--all", "--quiet", fmt.Sprintf("--filter=label=gorm-ryw.rywtest.pid=%d", pid))
	return engine(t, append([]string{"inspect", "--format={{range .Mounts}}{{.Name}} {{end}}"}, containers...)...)
}

func wantNoVolumes(t *testing.T, names []string) {
	t.Helper()
	if len(names) == 0 {
		return
	}
	for _, name := range engine(t, "volume", "ls", "--quiet") {
		if slices.Contains(names, name) {
			t.Errorf("volume %s is still there", name)
		}
	}
}

// What an engine that takes its time has made after the process died goes, too.
func TestKilledWhileTheEngineIsBusy(t *testing.T) {
	if !onDocker() {
		t.Skip("it needs containers")
	}
	client, err := exec.LookPath("docker")
	must(t, err)
	busy := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != create ] || { echo >'%s/created'; sleep 3; }\nexec '%s' \"$@\"\n", "%s", client)
	for _, test := range []struct {
		sig   syscall.Signal
		limit time.Duration
	}{{syscall.SIGTERM, 0}, {syscall.SIGKILL, tidyLimit}} {
		dir, bin := privateTemp(t), t.TempDir()
		must(t, os.WriteFile(filepath.Join(bin, "docker"), fmt.Appendf(nil, busy, bin), 0o755))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		cmd, _ := startChild(t, "wait", dir, "starting")
		awaitFile(t, filepath.Join(bin, "created"))
		must(t, cmd.Process.Signal(test.sig))
		_ = cmd.Wait()
		timer := time.NewTimer(3500 * time.Millisecond) // when the engine is done
		<-timer.C
		wantNoRemains(t, dir, cmd.Process.Pid, test.limit)
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	ctx := within(t, patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %s after %v", path, patience)
		}
	}
}

func TestDockerSaysWhatIsMissing(t *testing.T) {
	o := rywtest.Options{Backend: rywtest.Docker}
	if _, err := exec.LookPath("docker"); err == nil {
		t.Setenv(rywtest.EnvImage, "rywtest/no-such-image")
		_, err := rywtest.Start(within(t, patience), o)
		wantError(t, err, rywtest.ErrNoDocker)
	}
	t.Setenv("DOCKER_HOST", "unix:///nowhere")
	_, err := rywtest.Start(within(t, patience), o)
	wantError(t, err, rywtest.ErrNoDocker)
	t.Setenv("PATH", "")
	_, err = rywtest.Start(within(t, patience), o)
	wantError(t, err, rywtest.ErrNoDocker, "program docker")
	o.BinDir = "/somewhere"
	if _, err = rywtest.Start(within(t, patience), o); err == nil || !strings.Contains(err.Error(), "BinDir") {
		t.Errorf("have error %v, want one about BinDir", err)
	}
}
