package rywpgx

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

func TestLinkAsksBehindTheCommit(t *testing.T) {
	s, h := newServer(t), &recorder{}
	db := s.pool(t, h)
	if err := exec(t, db, "insert 1"); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "insert 1, call 2852")
	if e := h.take(t, Committed); e.Sample.Position.LSN != 0x3000160 || e.Sample.Position.Timeline != 1 || e.Sample.System != 4711 {
		t.Errorf("have %+v", e.Sample)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"insert 2", "select 1"} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "begin, insert 2, select 1, commit, call 2852")
	if e := h.take(t, Committed); e.Sample.Position.LSN != 0x3000360 {
		t.Errorf("have %+v", e.Sample)
	}
}

// What nobody wants is not asked for.
func TestLinkAsksNothing(t *testing.T) {
	for name, c := range map[string]struct {
		h    Hooks
		text string
	}{
		"not bound":      {nil, "insert 1"},
		"nobody":         {&recorder{nobody: true}, "insert 1"},
		"a read":         {&recorder{}, "select 1"},
		"a begin":        {&recorder{floor: true}, "begin"},
		"without probe":  {&recorder{noProbe: true}, "insert 1"},
		"a savepoint":    {&recorder{floor: true}, "savepoint a"},
		"several, begin": {&recorder{nobody: true}, "insert 1; begin"},
	} {
		s := newServer(t)
		db := s.pool(t, c.h)
		if err := exec(t, db, c.text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if have := s.asked(); have != c.text && name != "a savepoint" {
			t.Errorf("%s: server was asked %q", name, have)
		}
	}
}

func TestLinkWithoutProbeReportsWithoutPosition(t *testing.T) {
	s, h := newServer(t), &recorder{noProbe: true}
	db := s.pool(t, h)
	if err := exec(t, db, "insert 1"); err != nil {
		t.Fatal(err)
	}
	if e := h.take(t, Committed); e.Placed() || !errors.Is(e.Err, errNotAsked) {
		t.Errorf("have %+v", e)
	}
	if err := exec(t, db, "fail"); err == nil {
		t.Fatal("no error")
	}
	if e := h.take(t, Undone); e.Placed() {
		t.Errorf("have %+v", e)
	}
}

// A server that knows no such function is asked in SQL.
func TestLinkFallsBackToSQL(t *testing.T) {
	for name, refuse := range map[string]func() pgproto3.BackendMessage{
		"an error": func() pgproto3.BackendMessage {
			return &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42883", Message: "no function"}
		},
		"something else": func() pgproto3.BackendMessage { return &pgproto3.FunctionCallResponse{Result: []byte{1}} },
		"nothing":        func() pgproto3.BackendMessage { return &pgproto3.FunctionCallResponse{} },
	} {
		s, h := newServer(t), &recorder{}
		db := s.pool(t, h)
		s.set(refuse)
		if err := exec(t, db, "insert 1"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e := h.take(t, Committed); e.Placed() || e.Err == nil {
			t.Errorf("%s: have %+v, want no position", name, e)
		}
		if err := exec(t, db, "insert 2"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.expect(t, "insert 1, call 2852, insert 2, capture")
		if e := h.take(t, Committed); e.Sample.Position.LSN != 0x3000260 {
			t.Errorf("%s: have %+v", name, e)
		}
	}
}

func TestLinkTellsTheFloor(t *testing.T) {
	s, h := newServer(t), &recorder{floor: true}
	db := s.pool(t, h)
	if err := exec(t, db, "select 1"); err != nil {
		t.Fatal(err)
	}
	if e := h.take(t, Read); e.Sample.Position.LSN != 0x3000060 {
		t.Errorf("have %+v", e)
	}
	if err := exec(t, db, "fail"); err == nil {
		t.Fatal("no error")
	}
	if e := h.take(t, Undone); !e.Placed() || e.Err == nil {
		t.Errorf("have %+v", e)
	}
	s.expect(t, "select 1, call 2852, fail, call 2852")
}

func TestLinkRoundsDown(t *testing.T) {
	s, h := newServer(t), &recorder{}
	db := s.pool(t, h)
	s.mu.Lock()
	s.lsn = 0x3002018 - 0x100 // the next page's header ends 24 bytes behind its edge
	s.mu.Unlock()
	if err := exec(t, db, "insert 1"); err != nil {
		t.Fatal(err)
	}
	if e := h.take(t, Committed); e.Sample.Position.LSN != 0x3002000 {
		t.Errorf("have %s, want 0/3002000", e.Sample.Position)
	}
}

// A statement costs no allocation more than it does without hooks, but for the
// answer's bytes.
func TestLinkAllocations(t *testing.T) {
	s := newServer(t)
	measure := func(h Hooks) float64 {
		db := s.pool(t, h)
		ctx := t.Context()
		return testing.AllocsPerRun(200, func() {
			if _, err := db.ExecContext(ctx, "select 1"); err != nil {
				t.Fatal(err)
			}
		})
	}
	plain := measure(nil)
	if have := measure(&recorder{}); have > plain {
		t.Errorf("a read that nobody asks anything of: have %v allocations, want %v", have, plain)
	}
}
