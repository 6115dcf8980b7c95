package callbacks

import (
	"context"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// What the driver tells of a unit of work, the sessions know afterwards.
func TestReport(t *testing.T) {
	pos := token.Position{Timeline: 1, LSN: 500}
	sample := watcher.Sample{Position: pos, System: 7, Incarnation: 1, Begun: 1 << 60, Received: 1<<60 + 1}
	lost := errors.New("lost")
	for name, tc := range map[string]struct {
		event rywpgx.Event
		want  token.Entry
	}{
		"committed, placed": {rywpgx.Event{Outcome: rywpgx.Committed, Sample: sample}, token.Entry{Key: token.Key{System: 7}, Write: pos}},
		"committed, not":    {rywpgx.Event{Outcome: rywpgx.Committed, Err: lost}, token.Entry{Wrote: true}},
		"indeterminate":     {rywpgx.Event{Outcome: rywpgx.Indeterminate, Err: lost}, token.Entry{Wrote: true}},
		"undone":            {rywpgx.Event{Outcome: rywpgx.Undone, Err: lost}, token.Entry{SeenPrimary: true}},
		"read, placed":      {rywpgx.Event{Outcome: rywpgx.Read, Sample: sample}, token.Entry{Key: token.Key{System: 7}, Floor: pos}},
		"read, not":         {rywpgx.Event{Outcome: rywpgx.Read}, token.Entry{SeenPrimary: true}},
	} {
		t.Run(name, func(t *testing.T) {
			group := watcher.NewGroup(watcher.Config{}, "p", func(context.Context) (*pgx.Conn, error) { return nil, lost })
			defer group.Close()
			l := New(Config{Router: policy.NewRouter(policy.Settings{})}, group)
			s := session.New()
			report{h: driverHooks{l, group}, plain: [2]*session.Session{s}}.Report(tc.event)
			have := s.Token().At(0)
			tc.want.Minted = have.Minted
			if s.Token().Len() != 1 || have.Key != tc.want.Key || have.Write != tc.want.Write || have.Floor != tc.want.Floor ||
				have.Wrote != tc.want.Wrote || have.SeenPrimary != tc.want.SeenPrimary {
				t.Errorf("have %+v, want %+v", have, tc.want)
			}
			captures, marks := l.Counters().Captures, l.Counters().WriteMarks
			wrote := tc.event.Outcome == rywpgx.Committed || tc.event.Outcome == rywpgx.Indeterminate
			if wrote && captures+marks != 1 || !wrote && captures+marks != 0 {
				t.Errorf("have %d captures and %d marks", captures, marks)
			}
		})
	}
}
