package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGo(t *testing.T) {
	if out := compile(t, in(allBlocks(t), "go")); out != "" {
		t.Error(out)
	}
}

// TestWrongNamesAreFound breaks a block of each kind.
func TestWrongNamesAreFound(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"statements", "x := 1\ndb.Scopes(scopes.StaleOk()).Find(&list)\n", "x.md:8: undefined: scopes.StaleOk"},
		{"declarations", "func f() error {\n\treturn ryw.WaitFor(ctx, tok)\n}\n", "x.md:8: ryw.WaitFor undefined"},
		{"an expression", "rywplugin.Config{Defaults: 1}\n", "x.md:7: unknown field Defaults"},
		{"program", "package main\n\nimport \"github.com/gorm-ryw/gorm-ryw/token\"\n\nvar x token.Tokens\n", "x.md:11: undefined: token.Tokens"},
		{"no Go", "db.Use(ryw))\n", "x.md:7: neither declarations nor statements"},
	} {
		b := block{file: "x.md", line: 7, lang: "go", text: c.text}
		if out := compile(t, []block{b}); !strings.Contains(out, c.want) {
			t.Errorf("%s: have %q, want %q", c.kind, out, c.want)
		}
	}
}

// compile compiles blocks, each as a package of its own that exists in the build's
// overlay only, and returns what the compiler says.
func compile(t *testing.T, blocks []block) (complaints string) {
	t.Helper()
	if out, err := exec.Command("go", "env", "GOWORK").Output(); err != nil || strings.TrimSpace(string(out)) == "off" {
		t.Skipf("the blocks use all modules of the workspace, and there is none: GOWORK=%s %v", out, err)
	}
	f := readContext(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for i, b := range blocks {
		program, err := f.program(b)
		if err != nil {
			complaints += err.Error() + "\n"
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		write(t, name, []byte(program))
		replace[filepath.Join(here, "blocks", fmt.Sprintf("b%d", i), "block.go")] = name
	}
	if len(replace) == 0 {
		return complaints
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-gcflags=-e", "./blocks/...")
	if out, err := cmd.CombinedOutput(); err != nil {
		complaints += string(out)
	}
	return strings.ReplaceAll(complaints, "blocks/", "")
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
