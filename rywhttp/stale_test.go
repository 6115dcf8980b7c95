package rywhttp

import (
	"net/http"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/session"
)

func TestAStaleAnswerSaysSo(t *testing.T) {
	for _, stale := range []bool{false, true} {
		h := wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
			if stale {
				s.NoteStale()
			}
			w.WriteHeader(http.StatusTeapot)
			s.NoteStale() // too late for the headers
		})
		have := call(h, nil).Header.Get(StaleHeader)
		if have != map[bool]string{true: "1"}[stale] {
			t.Errorf("stale %v: have %q", stale, have)
		}
	}
}
