package docs

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func TestShell(t *testing.T) {
	for _, b := range in(allBlocks(t), "sh") {
		cmd := exec.Command("bash", "-n")
		cmd.Stdin = strings.NewReader(b.text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: %v: %s", b.file, b.line, err, out)
		}
	}
}

// TestSQL runs each block of SQL on a server that has a role named app.
func TestSQL(t *testing.T) {
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
	if err := execute(ctx, c.Primary(), "create role app login"); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, b := range in(allBlocks(t), "sql") {
		server := c.Primary()
		switch {
		case slices.Equal(b.words, []string{"elsewhere"}):
			continue
		case slices.Equal(b.words, []string{"replica"}):
			server = c.Replica(0)
		case len(b.words) > 0:
			t.Errorf("%s:%d: sql %q: want nothing, replica or elsewhere", b.file, b.line, b.words)
		}
		ran++
		if err := execute(ctx, server, b.text); err != nil {
			t.Errorf("%s:%d: %v", b.file, b.line, err)
		}
	}
	if ran == 0 {
		t.Error("no document has a block of SQL")
	}
	if err := execute(ctx, c.Replica(0), "create table t ()"); err == nil {
		t.Error("a wrong block goes unnoticed")
	}
}

// execute runs statements by the simple protocol, which takes several.
func execute(ctx context.Context, s *rywtest.Server, statements string) error {
	conn, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, statements).ReadAll()
	return err
}
