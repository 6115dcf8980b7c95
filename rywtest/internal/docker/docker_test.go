//go:build linux || darwin

package docker

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTailKeepsTheEnd(t *testing.T) {
	var log tail
	for range 5000 {
		if n, err := log.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Fatalf("have %d, %v", n, err)
		}
	}
	from := log.size()
	if from != 50000 {
		t.Errorf("have size %d, want 50000", from)
	}
	_, _ = log.Write([]byte("new"))
	if have := log.since(from); have != "new" {
		t.Errorf("since: have %q, want new", have)
	}
	if have := log.String(); len(have) != logSize || !strings.HasSuffix(have, "56789new") {
		t.Errorf("have %d bytes that end with %q", len(have), have[len(have)-8:])
	}
}

func TestFirstLine(t *testing.T) {
	var line firstLine
	for _, part := range []string{"4", "2"} {
		_, _ = line.Write([]byte(part))
	}
	if have := line.String(); have != "" {
		t.Errorf("have %q of a line that is not complete", have)
	}
	_, _ = line.Write([]byte("1\n7"))
	_, _ = line.Write([]byte("8\n"))
	if have := line.String(); have != "421" {
		t.Errorf("have %q, want 421", have)
	}
}

func TestAddresses(t *testing.T) {
	b := &Backend{subnet: netip.MustParsePrefix("10.1.2.0/29")}
	for i, want := range []string{"10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6"} {
		if have, err := b.address(i); have != want || err != nil {
			t.Errorf("address %d: have %s (%v), want %s", i, have, err, want)
		}
	}
	if have, err := b.address(5); err == nil {
		t.Errorf("have %s in a full network", have)
	}
}

func TestOctal(t *testing.T) {
	if have, want := octal([]byte{0, 'a', 255}), `\000\141\377`; have != want {
		t.Errorf("have %s, want %s", have, want)
	}
}

// The watchdog waits for the engine's slower answers; here there is nothing at all.
func TestSweepCommandQuotesTheClient(t *testing.T) {
	b := &Backend{client: "/it's/docker", id: "x"}
	have := b.sweepCommand()
	if !strings.Contains(have, `'/it'\''s/docker' ps -aq --filter label=gorm-ryw.rywtest=x`) || strings.Contains(have, "\n") {
		t.Errorf("have %s", have)
	}
}

func TestTemplateKeyDiffersForWhatTemplatesDifferIn(t *testing.T) {
	keys := map[string]string{}
	for what, b := range map[string]struct {
		base string
		spec backend.Spec
	}{
		"nothing":  {"i", backend.Spec{Settings: map[string]string{"work_mem": "1MB"}}},
		"image":    {"j", backend.Spec{}},
		"recorded": {"i", backend.Spec{Settings: map[string]string{"max_connections": "7"}}},
		"initdb":   {"i", backend.Spec{InitArgs: []string{"--wal-segsize=1"}}},
	} {
		key := (&Backend{spec: b.spec}).templateKey(b.base)
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s have the same template", what, other)
		}
		keys[key] = what
	}
	if (&Backend{}).templateKey("i") != (&Backend{spec: backend.Spec{Settings: map[string]string{"work_mem": "1MB"}}}).templateKey("i") {
		t.Error("a setting that is not recorded asks for another template")
	}
}

func TestClosedBackendDoesNothing(t *testing.T) {
	b := &Backend{client: os.Args[0], closed: true}
	if _, err := b.do(context.Background(), "ps"); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("have %v, want %v", err, backend.ErrClosed)
	}
}
