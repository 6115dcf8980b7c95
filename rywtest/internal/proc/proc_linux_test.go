package proc

import "testing"

func TestStatWithParenthesesInTheName(t *testing.T) {
	text := "42 (a) b (c)) S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 1"
	have, err := parseStat(42, text)
	want := Info{ID: ID{PID: 42, Start: "987654"}, Parent: 7, State: 'S'}
	if err != nil || have != want {
		t.Errorf("have %+v (%v), want %+v", have, err, want)
	}
	if _, err := parseStat(42, "42 (a) S 7"); err == nil {
		t.Error("a short line is no error")
	}
}
