package series

import (
	"cmp"
	"maps"
	"slices"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
)

// Plugin is what is needed of a *rywplugin.Plugin.
type Plugin interface{ Status() rywplugin.Status }

// Middleware is what is needed of a *rywhttp.Middleware.
type Middleware interface{ Stats() rywhttp.Stats }

// Carrier is what is needed of a *carrier.Carrier.
type Carrier interface {
	Counts() (missing, invalid int64)
}

// Transport is what is needed of a *rywhttp.Transport.
type Transport interface {
	Dropped() int64
	Invalid() int64
}

// Sources are where numbers come from.
type Sources struct {
	Plugin      Plugin
	middlewares []Middleware
	carriers    map[string][]Carrier
}

// Option adds a source.
type Option func(*Sources)

// New returns the sources that begin with a plugin.
func New(p Plugin, more []Option) *Sources {
	s := &Sources{Plugin: p, carriers: map[string][]Carrier{}}
	for _, o := range more {
		o(s)
	}
	return s
}

// HTTP adds a middleware.
func HTTP(m Middleware) Option {
	return func(s *Sources) { s.middlewares = append(s.middlewares, m) }
}

// Via adds a carrier, under a name of the program's own.
func Via(name string, c Carrier) Option {
	return func(s *Sources) { s.carriers[name] = append(s.carriers[name], c) }
}

// Client adds a round-tripper.
func Client(t Transport) Option { return Via("http_client", client{t}) }

type client struct{ Transport }

// Counts implements Carrier.
func (c client) Counts() (missing, invalid int64) { return c.Dropped(), c.Invalid() }

// http is the sum of all middlewares.
func (s *Sources) http() (sum rywhttp.Stats) {
	for _, m := range s.middlewares {
		st := m.Stats()
		sum.Requests += st.Requests
		sum.Missing += st.Missing
		sum.Invalid += st.Invalid
		sum.Refused += st.Refused
		sum.Sent += st.Sent
		sum.Ahead += st.Ahead
		sum.Late += st.Late
		sum.StoreFailed += st.StoreFailed
	}
	return sum
}

type carried struct {
	via              string
	missing, invalid int64
}

// carried is the sum of carriers by their names.
func (s *Sources) carried() (all []carried) {
	for _, via := range slices.SortedFunc(maps.Keys(s.carriers), cmp.Compare[string]) {
		c := carried{via: via}
		for _, one := range s.carriers[via] {
			missing, invalid := one.Counts()
			c.missing += missing
			c.invalid += invalid
		}
		all = append(all, c)
	}
	return all
}
