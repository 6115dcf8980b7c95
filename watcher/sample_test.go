package watcher

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5/pgconn"
)

const page, segment = 8192, 16 << 20

// An insert position on the edge of a page is past the next page's header, where
// no record ends; no standby gets there before the next record.
func TestInsertPositionIsRoundedDownAtPageEdges(t *testing.T) {
	for _, tc := range []struct {
		name       string
		have, want uint64
	}{
		{"middle of a page", 5*page + 500, 5*page + 500},
		{"page edge", 5 * page, 5 * page},
		{"behind a page header", 5*page + 24, 5 * page},
		{"one byte before it", 5*page + 23, 5*page + 23},
		{"one byte behind it", 5*page + 25, 5*page + 25},
		{"long header's length on a page", 5*page + 40, 5*page + 40},
		{"segment edge", 3 * segment, 3 * segment},
		{"behind a segment header", 3*segment + 40, 3 * segment},
		{"short header's length on a segment", 3*segment + 24, 3 * segment},
		{"last page of a segment", 3*segment - page + 24, 3*segment - page},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fakepg.New(t, fakepg.PrimaryAt(tc.have))
			p := NewProbe(s.Connect())
			for _, form := range []string{"full", "short"} {
				got, err := p.Take(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if got.Position != at(1, tc.want) {
					t.Errorf("%s query: have %s, want %s", form, got.Position, at(1, tc.want))
				}
			}
			if s.Statements()[1] != CaptureSQL {
				t.Error("second query of a primary is not the short one")
			}
		})
	}
}

func TestRoundingGoesByTheServersOwnSizes(t *testing.T) {
	st := fakepg.PrimaryAt(7*32768 + 24)
	st.Block = 32768
	for lsn, want := range map[uint64]uint64{7*32768 + 24: 7 * 32768, 7*32768 + 8192 + 24: 7*32768 + 8192 + 24} {
		st.LSN = lsn
		if got, err := NewProbe(fakepg.New(t, st).Connect()).Take(context.Background()); err != nil || got.Position != at(1, want) {
			t.Errorf("have %s, %v, want %s", got.Position, err, at(1, want))
		}
	}
	if got := (walGeometry{}).roundDown(24); got != 24 {
		t.Errorf("sizes not known: have %d, want 24 as it is", got)
	}
}

func TestReplayPositionIsNotRounded(t *testing.T) {
	s := fakepg.New(t, fakepg.StandbyAt(2, 5*page+24))
	p := NewProbe(s.Connect())
	for range 2 {
		got, err := p.Take(context.Background())
		if err != nil || got.Position != at(1, 5*page+24) {
			t.Errorf("have %s, %v, want %s", got.Position, err, at(1, 5*page+24))
		}
	}
	for _, sql := range s.Statements() {
		if sql != sampleSQL {
			t.Error("a standby was asked by the short query, which cannot tell a promotion")
		}
	}
}

func TestSampleSaysWhatTheServerSays(t *testing.T) {
	st := fakepg.StandbyAt(2, 4096)
	st.Paused, st.Timeline, st.System = true, 7, 1<<63+12345
	p := NewProbe(fakepg.New(t, st).Connect())
	got, err := p.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !got.Standby || !got.Paused || got.Pooled || got.Position != at(7, 4096) || got.System != st.System {
		t.Errorf("have %+v", got)
	}
	if got.Incarnation == 0 || got.Begun == 0 || got.Received < got.Begun {
		t.Errorf("have incarnation %d, begun %d, received %d", got.Incarnation, got.Begun, got.Received)
	}
	if p.Last() != got {
		t.Error("Last is not the sample taken")
	}
}

func TestPromotionIsSeenOnTheSameConnection(t *testing.T) {
	s := fakepg.New(t, fakepg.StandbyAt(2, 4096))
	p := NewProbe(s.Connect())
	if _, err := p.Take(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.Set(func(st *fakepg.State) { st.Standby, st.Timeline = false, 2 })
	if got, err := p.Take(context.Background()); err != nil || got.Standby || got.Position != at(2, 4096) {
		t.Errorf("after promotion: have %+v, %v", got, err)
	}
}

func TestPoolerIsRecognised(t *testing.T) {
	st := fakepg.PrimaryAt(4096)
	st.Pooled = true
	s := fakepg.New(t, st)
	p := NewProbe(s.Connect())
	for range 2 {
		if got, err := p.Take(context.Background()); err != nil || !got.Pooled {
			t.Errorf("have pooled %v, %v, want true", got.Pooled, err)
		}
	}
	if s.Statements()[1] == CaptureSQL {
		t.Error("short query behind a pooler, where the server may be another one each time")
	}
}

// A pooler may appear between two queries of one connection, as when the first
// one met the same server process by chance.
func TestShortQueryThatMeetsAnotherProcessIsNotTrusted(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(4096))
	p := NewProbe(s.Connect())
	if _, err := p.Take(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.Set(func(st *fakepg.State) { st.Pooled, st.LSN, st.Timeline, st.System = true, 9000, 3, 99 })
	got, err := p.Take(context.Background())
	if err != nil || !got.Pooled || got.Position != at(3, 9000) || got.System != 99 {
		t.Errorf("have %+v, %v, want everything asked for again", got, err)
	}
}

func TestIncarnationNamesALife(t *testing.T) {
	take := func(st fakepg.State) token.Incarnation {
		got, err := NewProbe(fakepg.New(t, st).Connect()).Take(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return got.Incarnation
	}
	base := fakepg.StandbyAt(2, 1000)
	later, restarted, crashed, elsewhere := base, base, base, base
	later.LSN, later.Timeline, later.Paused = 9000, 2, true
	restarted.Start++
	crashed.Resets++ // a crash of one backend leaves the start time alone
	elsewhere.System++
	want := take(base)
	if have := take(later); have != want {
		t.Error("incarnation changed within a life")
	}
	for name, st := range map[string]fakepg.State{"restart": restarted, "crash": crashed, "other cluster": elsewhere} {
		if take(st) == want {
			t.Errorf("%s: incarnation is the same", name)
		}
	}
}

func TestSampleErrors(t *testing.T) {
	old, empty := fakepg.PrimaryAt(1000), fakepg.StandbyAt(2, 1000)
	old.Version, empty.NoPosition = "13.14", true
	for _, tc := range []struct {
		name string
		st   fakepg.State
		fail string
		want func(error) bool
	}{
		{"old server", old, "", func(err error) bool {
			return errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "have PostgreSQL 13.14, want 14")
		}},
		{"no position", empty, "", func(err error) bool { return errors.Is(err, errNoPosition) }},
		{"SQLSTATE", fakepg.PrimaryAt(1000), "42501", func(err error) bool {
			var pg *pgconn.PgError
			return errors.As(err, &pg) && pg.Code == "42501"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, quiet)
			c.primary.Set(func(st *fakepg.State) { *st = tc.st })
			c.primary.Fail(tc.fail)
			err := c.fails(c.group.Primary)
			if !tc.want(err) || !strings.Contains(err.Error(), "position of primary") {
				t.Errorf("have %v", err)
			}
			if st := c.group.Primary.State(); !st.Failed || st.Healthy || st.Proven || st.Reason != err.Error() {
				t.Errorf("state: have %+v", st)
			}
		})
	}
}

func TestNewServersAreSupported(t *testing.T) {
	for _, v := range []string{"14.0", "15.18 (Debian 15.18-1)", "18beta1", "pooler 1.2"} {
		st := fakepg.PrimaryAt(1000)
		st.Version = v
		if err := supported(fakepg.New(t, st).Connect()); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestRowsThatMakeNoSenseAreErrors(t *testing.T) {
	p := NewProbe(fakepg.New(t, fakepg.PrimaryAt(1000)).Connect())
	if _, err := p.Captured([][]byte{[]byte("x"), []byte("1")}, mono.Now()); err == nil {
		t.Error("capture of a position that is no number: want an error")
	}
	row := make([][]byte, sampleColumns)
	for i := range row {
		row[i] = []byte("1")
	}
	if _, err := p.parse(row); err != nil {
		t.Errorf("row of numbers: %v", err)
	}
	for _, i := range []int{0, 1, 2, 3, 4, 9, 10, 11} {
		bad := append([][]byte(nil), row...)
		bad[i] = []byte("-1")
		if _, err := p.parse(bad); err == nil {
			t.Errorf("column %d is no number: want an error", i)
		}
	}
	if _, err := p.parse(row[:11]); !errors.Is(err, errBadAnswer) {
		t.Errorf("column missing: have %v", err)
	}
	if _, err := oneRow(nil); err == nil {
		t.Error("no result: want an error")
	}
}
