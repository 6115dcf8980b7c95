package rywotel

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"go.opentelemetry.io/otel/propagation"
)

var here = token.Key{System: 11}

func wrote(lsn uint64) token.Token {
	return token.FromEntries(token.Entry{Key: here, Write: token.Position{Timeline: 1, LSN: token.LSN(lsn)}})
}

func with(tok token.Token) context.Context {
	return session.NewContext(context.Background(), session.New(tok))
}

func held(t *testing.T, ctx context.Context) token.Token {
	t.Helper()
	s, ok := session.FromContext(ctx)
	if !ok {
		t.Fatal("no session")
	}
	return s.Token()
}

func carriers() map[string]propagation.TextMapCarrier {
	return map[string]propagation.TextMapCarrier{"map": propagation.MapCarrier{}, "HTTP": propagation.HeaderCarrier(http.Header{})}
}

func signer(t *testing.T) *token.Signer {
	t.Helper()
	s, err := token.NewSigner(token.Secret{ID: "k1", Key: bytes.Repeat([]byte("k"), 40)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATokenTravelsWithATrace(t *testing.T) {
	for with1, p := range map[string]Propagator{"unsigned": {}, "signed": {Carrier: &carrier.Carrier{Signer: signer(t)}}} {
		all := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, p)
		for name, c := range carriers() {
			all.Inject(with(wrote(77)), c)
			if have := held(t, all.Extract(context.Background(), c)); !have.Equal(wrote(77)) {
				t.Errorf("%s %s: have %s", with1, name, have)
			}
			// Somebody with nothing to see is not somebody who dropped it.
			p.Inject(with(token.Token{}), c)
			if have := held(t, p.Extract(context.Background(), c)); !have.IsZero() {
				t.Errorf("%s %s, empty: have %s", with1, name, have)
			}
		}
	}
}

func TestACollectorsTokenTravels(t *testing.T) {
	tok := wrote(77)
	c := propagation.MapCarrier{}
	Propagator{}.Inject(session.Collect(context.Background(), &tok), c)
	if have := held(t, Propagator{}.Extract(context.Background(), c)); !have.Equal(tok) {
		t.Errorf("have %s", have)
	}
}

func TestWithoutAToken(t *testing.T) {
	for missing, marked := range map[carrier.Missing]bool{carrier.MissingStrong: true, carrier.MissingRefused: true, carrier.MissingStale: false} {
		p := Propagator{Carrier: &carrier.Carrier{Missing: missing}}
		for name, c := range carriers() {
			c.Set("traceparent", "00-x")
			p.Inject(context.Background(), c) // nothing
			wantMarked(t, p.Extract(context.Background(), c), name, marked)
		}
		if have, _ := p.Carrier.Counts(); have != 2 {
			t.Errorf("%d: have %d counted", missing, have)
		}
	}
}

func TestAnInvalidToken(t *testing.T) {
	p := Propagator{Carrier: &carrier.Carrier{Signer: signer(t), Missing: carrier.MissingStale}}
	for _, text := range []string{"garbage", wrote(77).String()} {
		ctx := p.Extract(context.Background(), propagation.MapCarrier{field: text})
		wantMarked(t, ctx, text, true)
	}
	if _, have := p.Carrier.Counts(); have != 2 {
		t.Errorf("have %d counted", have)
	}
}

func wantMarked(t *testing.T, ctx context.Context, name string, want bool) {
	t.Helper()
	s, ok := session.FromContext(ctx)
	if !ok {
		t.Fatalf("%s: no session", name)
	}
	var n session.Need
	if s.Need(&n, here, time.Time{}); n.Marked != want || !n.Position.IsZero() {
		t.Errorf("%s: have marked %t, position %s, want marked %t", name, n.Marked, n.Position, want)
	}
}

// rywhttp may have begun a session already.
func TestASessionThatIsThereGoesOn(t *testing.T) {
	ctx := with(wrote(50))
	after := Propagator{}.Extract(ctx, propagation.MapCarrier{field: wrote(77).String()})
	if after != ctx || !held(t, ctx).Equal(wrote(77)) {
		t.Errorf("have %s", held(t, ctx))
	}
}

func TestFields(t *testing.T) {
	c := propagation.MapCarrier{}
	Propagator{}.Inject(with(wrote(7)), c)
	if fields := (Propagator{}).Fields(); len(fields) != 1 || c[fields[0]] == "" {
		t.Errorf("have fields %v of %v", fields, c)
	}
}
