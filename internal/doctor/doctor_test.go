package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReportText(t *testing.T) {
	r := &Report{Findings: []Finding{
		{Level: OK, Server: "primary h:1", Check: "role", Found: "primary"},
		{Level: Fail, Server: "replica 1 h:2", Check: "paused", Found: "replay is paused", Means: "it falls behind", Fix: "one;\ntwo;"},
		{Level: Warn, Check: "pools", Found: "a", Means: "b"},
	}}
	const want = `primary h:1
  ok    role          primary
replica 1 h:2
  FAIL  paused        replay is paused
        means: it falls behind
        fix:   one;
               two;
all together
  warn  pools         a
        means: b
doctor: fail=1 warn=1 note=0 ok=1
`
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || b.String() != want {
		t.Errorf("have %v\n%s\nwant\n%s", err, b.String(), want)
	}
	if !r.Failed() || (&Report{Findings: r.Findings[2:]}).Failed() {
		t.Error("only FAIL fails")
	}
}

func TestClocks(t *testing.T) {
	for ahead, want := range map[time.Duration]Level{
		0: OK, 4 * time.Second: OK, -4 * time.Second: OK, 6 * time.Second: Note, -6 * time.Second: Note, 2 * time.Minute: Warn, -2 * time.Minute: Warn,
	} {
		if f := clocks("s", ahead, time.Millisecond); f.Level != want || (f.Fix == "") != (want == OK) {
			t.Errorf("%s: have %+v, want %s", ahead, f, want)
		}
	}
	if f := clocks("s", 8*time.Second, 4*time.Second); f.Level != OK {
		t.Errorf("a slow answer: have %+v", f)
	}
}

func TestSource(t *testing.T) {
	const head = "package a\nimport (\n\"gorm.io/plugin/dbresolver\"\npg \"gorm.io/driver/postgres\"\n\"github.com/gorm-ryw/gorm-ryw/plugin\"\n\"github.com/gorm-ryw/gorm-ryw/rywpgx\"\n)\n"
	const foreign = head + "var c = dbresolver.Config{Policy: nil, Replicas: []gorm.Dialector{pg.Open(r)}}\n"
	const trusting = head + "var p = rywplugin.New(rywplugin.Config{TrustPools: true})\n"
	for name, tc := range map[string]struct {
		files map[string]string
		level Level
		says  string
	}{
		"nothing":             {map[string]string{"a.go": "package a"}, OK, "1 Go files"},
		"rywpgx":              {map[string]string{"a.go": strings.Replace(foreign, "pg.Open", "rywpgx.Open", 1)}, OK, "1 Go files"},
		"foreign":             {map[string]string{"a.go": foreign}, Fail, "a.go:8: dbresolver opens"},
		"foreign, by New":     {map[string]string{"a.go": strings.Replace(foreign, "pg.Open(r)", "pg.New(pg.Config{})", 1)}, Fail, "a.go:8"},
		"foreign, trusted":    {map[string]string{"a.go": foreign, "b/b.go": trusting}, Warn, "a.go:8"},
		"trusted, not opened": {map[string]string{"b.go": trusting}, OK, "1 Go files"},
		"in a test":           {map[string]string{"a_test.go": foreign, "b.go": "package a"}, OK, "1 Go files"},
		"of others":           {map[string]string{"vendor/x/a.go": foreign, ".git/a.go": foreign, "b.go": "package a"}, OK, "1 Go files"},
		"does not compile":    {map[string]string{"a.go": "package"}, OK, "0 Go files"},
	} {
		folder := t.TempDir()
		for path, text := range tc.files {
			path = filepath.Join(folder, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		d := &doctor{report: &Report{}}
		d.read(folder)
		if fs := d.report.Findings; len(fs) != 1 || fs[0].Level != tc.level || !strings.Contains(fs[0].Found, tc.says) {
			t.Errorf("%s: have %+v, want %s %q", name, fs, tc.level, tc.says)
		}
	}
	d := &doctor{report: &Report{}}
	d.read("")
	d.read(filepath.Join(t.TempDir(), "none"))
	if fs := d.report.Findings; fs[0].Level != Note || fs[1].Level != Fail {
		t.Errorf("no folder: have %+v", fs)
	}
}

// Options that cannot be used are an error that tells no secret; an end of the
// context is one, too.
func TestRunFails(t *testing.T) {
	const bad = "postgres://u:hunter2@h:port/"
	for _, o := range []Options{{Primary: bad}, {Primary: "host=127.0.0.1 port=1", Replicas: []string{bad}}} {
		r, err := Run(t.Context(), o)
		if r != nil || err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("have %v, %v", r, err)
		}
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if r, err := Run(ctx, Options{Primary: "host=127.0.0.1 port=1", Replicas: []string{"host=127.0.0.1 port=1"}}); !errors.Is(err, gone) || !r.Failed() {
		t.Errorf("have %v, %v", r, err)
	}
}
