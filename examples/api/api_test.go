package api

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

const root = "../.."

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(root + "/*/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	env := servers(t)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Count(string(source), "\t// Prints:\n")
		if want == 0 {
			continue
		}
		ran++
		pkg := "./" + filepath.Base(filepath.Dir(file))
		t.Run(pkg, func(t *testing.T) {
			out := runExamples(t, pkg, strings.ReplaceAll(string(source), "\t// Prints:\n", "\t// Output:\n"), env)
			if have := strings.Count(out, "--- PASS: Example"); have < want {
				t.Errorf("have %d examples passed, want at least %d\n%s", have, want, out)
			}
		})
	}
	if ran == 0 {
		t.Error("no package has such examples")
	}
}

// TestWrongOutputIsFound has an example print something else than it says.
func TestWrongOutputIsFound(t *testing.T) {
	const source = "package token_test\n\nimport \"fmt\"\n\nfunc Example() {\n\tfmt.Println(1)\n\t// Output:\n\t// 2\n}\n"
	if out := runExamples(t, "./token", source, nil); !strings.Contains(out, "--- FAIL: Example ") {
		t.Errorf("have %s", out)
	}
}

// servers starts a primary with a replica and a table, and returns the environment that
// names them.
func servers(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := c.Primary().Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table orders (id bigserial primary key, status text not null)"); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReplicated(ctx); err != nil {
		t.Fatal(err)
	}
	return []string{"PRIMARY=" + c.Primary().DSN(), "REPLICA=" + c.Replica(0).DSN()}
}

// runExamples runs a package's examples with other source in the place of their file, and
// returns what go test says.
func runExamples(t *testing.T, pkg, source string, env []string) string {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join(root, pkg, "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	replaced, list := filepath.Join(dir, "example_test.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{replaced: []byte(source), list: overlay} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-overlay", list, "-count=1", "-v", "-timeout", "2m", "-run", "^Example", pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.CombinedOutput() // what it says, is looked at
	return string(out)
}
