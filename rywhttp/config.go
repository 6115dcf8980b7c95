package rywhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// Defaults of Config and Cookie.
const (
	// DefaultHeader is the header that a token travels in, both ways.
	DefaultHeader = "X-Consistency-Token"
	// StaleHeader is on a response, with the value 1, for which something was read
	// stale because too many reads fell back to the primary, see Stale of package
	// session.
	StaleHeader = "X-Consistency-Stale"
	// DefaultOpenFor is Config.OpenFor.
	DefaultOpenFor = 5 * time.Minute
	// DefaultCookieName is Cookie.Name.
	DefaultCookieName = "ryw"
	// DefaultCookieAge is Cookie.MaxAge: that of tokens, see
	// rywplugin.DefaultMaxTokenAge.
	DefaultCookieAge = 24 * time.Hour
)

// MaxCookies is how many cookies of one request are read. What more of them said
// is not lost: the request reads nothing older than its own beginning.
const MaxCookies = 64

// Missing is what becomes of a request that carries no token at all: of a new
// visitor, or of a client that drops headers and cookies.
type Missing uint8

// What becomes of a request without a token.
const (
	// MissingStrong has it read nothing older than its own beginning: on the
	// primary, or on a replica that has caught up with the primary since.
	MissingStrong Missing = iota
	// MissingStale lets any healthy replica answer it.
	MissingStale
	// MissingRefused answers it with 428 Precondition Required.
	MissingRefused
)

// Invalid is what becomes of a request with something in the place of a token
// that is none, or was not signed by us. It is never taken for no token: what it
// should have covered is not known.
type Invalid uint8

// What becomes of a request with an invalid token.
const (
	// InvalidStrong has it read nothing older than its own beginning, as
	// MissingStrong does, and replaces the cookie.
	InvalidStrong Invalid = iota
	// InvalidRefused answers it with 400 Bad Request.
	InvalidRefused
)

// ErrConfig is wrapped by the error of New for a Config that makes no sense; the
// message goes on with the field's name.
var ErrConfig = errors.New("rywhttp: invalid configuration")

// ErrMissing is what Config.Refuse gets for a request without a token.
var ErrMissing = errors.New("rywhttp: the request carries no consistency token")

// Config configures a Middleware. The zero value is valid: header and cookies,
// not signed, and requests without a token read what is current.
type Config struct {
	// Header is the header's name. Empty: DefaultHeader.
	Header string
	// NoHeader neither reads nor sets the header.
	NoHeader bool

	// Cookie says how cookies look.
	Cookie Cookie
	// NoCookies neither reads nor sets cookies.
	NoCookies bool
	// NoFloorCookies sets cookies for writes only: a browser sees its own writes,
	// but a later page may show an older state of other people's.
	NoFloorCookies bool

	// Signer signs what is sent; what comes back unsigned is invalid then. Nil:
	// tokens are not signed, see token.Signer for what that means.
	Signer *token.Signer

	// Missing and Invalid say what becomes of requests without a token and with
	// a bad one.
	Missing Missing
	Invalid Invalid
	// Refuse answers a refused request. err wraps ErrMissing or token.ErrInvalid
	// and repeats no more than a few escaped bytes of what the client sent. Nil:
	// a short text with 428 or 400.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)

	// Store keeps tokens besides what clients hold, by the key that StoreKey gives
	// for a request: of the user, for example, so that all devices of one see what
	// any of them wrote. Only trust what has been authenticated. An empty key means
	// no store for this request. Nil: no store.
	Store    Store
	StoreKey func(*http.Request) string
	// StoreTimeout bounds each of the two times that a request asks the store. A
	// store that cannot be asked makes the request read what is current, and is
	// counted. Zero: DefaultStoreTimeout.
	StoreTimeout time.Duration

	// Strict aborts the response to a request that wrote after its headers had
	// been sent without a word of it, or whose write Store could not be told of: the
	// client sees a broken connection instead of a success whose write it might not
	// find. Otherwise it is counted.
	Strict bool

	// OpenFor is how long a browser keeps the mark of a transaction that was open
	// when a response's headers were sent, whatever it reads meanwhile. It bounds
	// how long after its headers such a response may commit. Zero:
	// DefaultOpenFor.
	OpenFor time.Duration

	_ struct{}
}

// Cookie says how cookies look. The zero value is a good one: sent by browsers
// over HTTPS only, to the whole site, not to be seen by scripts.
type Cookie struct {
	// Name is what the names of all cookies begin with: letters, digits, '-' and
	// '_'. "__Host-ryw" has browsers refuse those that another host of the same
	// site has set. Empty: DefaultCookieName.
	Name string
	// Path is the path below which browsers send them. Empty: "/".
	Path string
	// Domain is the domain to whose hosts browsers send them. Empty: the one host
	// that set them.
	Domain string
	// MaxAge is how long browsers keep them, in whole seconds. It should not be
	// less than the longest time that a replica may lag. Zero: DefaultCookieAge.
	MaxAge time.Duration
	// SameSite says whether they go with requests that other sites cause. Zero:
	// http.SameSiteLaxMode.
	SameSite http.SameSite
	// Insecure has browsers send them over plain HTTP, too.
	Insecure bool
	// Readable lets scripts see them.
	Readable bool
	// Slots bounds how many cookies of each kind a browser can come to hold, for
	// pages that make a hundred requests at once. Two responses that are on their
	// way at the same time may then choose the same slot, and one of them be
	// forgotten. Zero: no bound, and nothing is forgotten; each response merges
	// and removes the cookies that its request came with.
	Slots int

	_ struct{}
}

func (c Config) withDefaults() Config {
	setDefault(&c.Header, DefaultHeader)
	setDefault(&c.OpenFor, DefaultOpenFor)
	setDefault(&c.StoreTimeout, DefaultStoreTimeout)
	setDefault(&c.Cookie.Name, DefaultCookieName)
	setDefault(&c.Cookie.Path, "/")
	setDefault(&c.Cookie.MaxAge, DefaultCookieAge)
	setDefault(&c.Cookie.SameSite, http.SameSiteLaxMode)
	c.Header = textproto.CanonicalMIMEHeaderKey(c.Header)
	if c.Refuse == nil {
		c.Refuse = refuse
	}
	return c
}

func setDefault[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// validate checks the fields after defaults were applied, singly and in pairs.
func (c Config) validate() error {
	switch k := c.Cookie; {
	case strings.Trim(c.Header, alphanumeric+"-") != "":
		return invalid("Header: have %q, want letters, digits and '-'", c.Header)
	case c.NoHeader && c.NoCookies && c.Store == nil:
		return invalid("NoCookies: is set together with NoHeader and without Store; nothing would carry a token")
	case (c.Store == nil) != (c.StoreKey == nil):
		return invalid("StoreKey: have %t, want it together with Store", c.StoreKey != nil)
	case c.StoreTimeout < 0:
		return invalid("StoreTimeout: have %s, want more than 0", c.StoreTimeout)
	case c.Missing > MissingRefused:
		return invalid("Missing: have %d, want MissingStrong, MissingStale or MissingRefused", c.Missing)
	case c.Invalid > InvalidRefused:
		return invalid("Invalid: have %d, want InvalidStrong or InvalidRefused", c.Invalid)
	case c.OpenFor < 0:
		return invalid("OpenFor: have %s, want more than 0", c.OpenFor)
	case strings.Trim(k.Name, slotChars) != "" || len(k.Name) > 32:
		return invalid("Cookie.Name: have %q, want at most 32 letters, digits, '-' and '_'", k.Name)
	case strings.HasPrefix(k.Name, "__Host-") && (k.Insecure || k.Path != "/" || k.Domain != ""):
		return invalid("Cookie.Name: have %q, which browsers refuse with Insecure, a Domain or a Path", k.Name)
	case strings.HasPrefix(k.Name, "__Secure-") && k.Insecure:
		return invalid("Cookie.Name: have %q, which browsers refuse with Insecure", k.Name)
	case k.Path[0] != '/':
		return invalid("Cookie.Path: have %q, want it to begin with a slash", k.Path)
	case k.MaxAge < time.Second:
		return invalid("Cookie.MaxAge: have %s, want 1s or more", k.MaxAge)
	case k.SameSite == http.SameSiteNoneMode && k.Insecure:
		return invalid("Cookie.SameSite: None is set together with Insecure, which browsers refuse")
	case k.Slots < 0 || k.Slots == 1:
		return invalid("Cookie.Slots: have %d, want 0 or at least 2", k.Slots)
	}
	if err := c.cookie(kindWrite, "x", token.Token{}).Valid(); err != nil {
		return invalid("Cookie: %s", err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// refuse is the default of Config.Refuse. It repeats nothing the client sent.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	if errors.Is(err, ErrMissing) {
		http.Error(w, "consistency token missing", http.StatusPreconditionRequired)
		return
	}
	http.Error(w, "consistency token invalid", http.StatusBadRequest)
}
