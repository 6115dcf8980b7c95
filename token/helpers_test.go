package token

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func describeEntry(e Entry) string {
	text := fmt.Sprintf("%v W %v F %v", e.Key, e.Write, e.Floor)
	if !e.Former.IsZero() {
		text += fmt.Sprintf(" former %v", e.Former)
	}
	if !e.Minted.IsZero() {
		text += fmt.Sprintf(" minted %d", e.Minted.UnixMilli())
	}
	if e.Wrote {
		text += " wrote"
	}
	if e.SeenPrimary {
		text += " primary"
	}
	if len(e.SeenNodes) > 0 {
		text += fmt.Sprintf(" nodes %v", e.SeenNodes)
	}
	if e.BroadCovered {
		text += " covered"
	}
	return text
}

// wantEntry compares the only entry of a token.
func wantEntry(t *testing.T, got Token, want Entry) {
	t.Helper()
	if got.Len() != 1 || !same(got.At(0), want) {
		t.Errorf("have %s\nwant one entry\n\t%s", describe(got), describeEntry(want))
	}
}

func wantEqual(t *testing.T, got, want Token) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("have %s (others %v)\nwant %s (others %v)", describe(got), got.Others(), describe(want), want.Others())
	}
}

// wantInvalid checks an error as a log would see it.
func wantInvalid(t *testing.T, err error, part string) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("error %v does not wrap ErrInvalid", err)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("error %q does not contain %q", err, part)
	}
	if len(err.Error()) > 110 {
		t.Errorf("error of %d bytes: %q", len(err.Error()), err)
	}
	for _, r := range err.Error() {
		if r < ' ' || r > '~' {
			t.Fatalf("error has character %q: %q", r, err)
		}
	}
}

func at(timeline uint32, lsn LSN) Position { return Position{Timeline: timeline, LSN: lsn} }
