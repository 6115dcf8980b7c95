//go:build linux || darwin

package rywtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

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
	var left []string
	for _, list := range [][]string{{"ps", "--all"}, {"network", "ls"}} {
		out, err := exec.Command("docker", append(list, "--quiet", filter)...).Output()
		must(t, err)
		left = append(left, strings.Fields(string(out))...)
	}
	return left
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
