package failrow

import (
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
)

func TestRowFails(t *testing.T) {
	leakcheck.Check(t)
	want := errors.New("bad token")
	row := New(want)
	var n int
	if err := row.Err(); !errors.Is(err, want) {
		t.Errorf("Err: have %v, want %v", err, want)
	}
	if err := row.Scan(&n); !errors.Is(err, want) {
		t.Errorf("Scan: have %v, want %v", err, want)
	}
}

func TestConnectorIsItsOwnDriver(t *testing.T) {
	want := errors.New("bad token")
	f := failing{want}
	if _, err := f.Driver().Open("dsn"); !errors.Is(err, want) {
		t.Errorf("have %v, want %v", err, want)
	}
}
