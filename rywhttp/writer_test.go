package rywhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/session"
)

// lazy is a reader that queries the database when it is read.
type lazy struct {
	io.Reader
	query func()
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.query != nil {
		l.query()
		l.query = nil
	}
	return l.Reader.Read(p)
}

// ways are how handlers answer after a write.
func ways(t *testing.T) map[string]inHandler {
	file := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(file, []byte(strings.Repeat("page ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]inHandler{
		"no answer":   func(http.ResponseWriter, *http.Request, *session.Session) {},
		"Write":       func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { _, _ = w.Write([]byte("x")) },
		"Write none":  func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { _, _ = w.Write(nil) },
		"WriteString": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { _, _ = io.WriteString(w, "x") },
		"Fprint":      func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { fmt.Fprintf(w, "%d", 1) },
		"Copy": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 1<<20)))
		},
		"Flush": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { w.(http.Flusher).Flush() },
		"Flush by controller": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		},
		"Stream": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			for range 3 {
				fmt.Fprintf(w, "x")
				w.(http.Flusher).Flush()
			}
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		},
		"ServeFile": func(w http.ResponseWriter, r *http.Request, _ *session.Session) { http.ServeFile(w, r, file) },
		"Error":     func(w http.ResponseWriter, _ *http.Request, _ *session.Session) { http.Error(w, "no", 500) },
		"Redirect": func(w http.ResponseWriter, r *http.Request, _ *session.Session) {
			http.Redirect(w, r, "/there", http.StatusFound)
		},
		"superfluous": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			w.WriteHeader(201)
			w.WriteHeader(202)
		},
		"trailers": func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprintf(w, "x")
			w.Header().Set("X-Sum", "1")
		},
	}
	for _, status := range []int{200, 201, 204, 205, 301, 302, 303, 304, 307, 404, 409, 500, 503} {
		all[fmt.Sprint("status ", status)] = func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			w.WriteHeader(status)
		}
	}
	return all
}

func TestTheTokenGoesBackHoweverAHandlerAnswers(t *testing.T) {
	for protocol, start := range protocols {
		for name, answer := range ways(t) {
			t.Run(protocol+" "+name, func(t *testing.T) {
				srv := start(t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, r *http.Request, s *session.Session) {
					wrote(s, 77)
					answer(w, r, s)
				}))
				resp := get(t, srv, nil)
				if protocol != fmt.Sprintf("HTTP/%d", resp.ProtoMajor) {
					t.Fatalf("have %s", resp.Proto)
				}
				wantWrite(t, tokenOf(t, resp), 77)
				wantWrite(t, set(resp).token(t, "w"), 77)
			})
		}
	}
}

// The source of a body may be what queries the database.
func TestWritesWhileTheBodyBegins(t *testing.T) {
	for name, copyTo := range map[string]func(w http.ResponseWriter, src io.Reader) error{
		"Copy": func(w http.ResponseWriter, src io.Reader) error { _, err := io.Copy(w, src); return err },
		"ReadFrom": func(w http.ResponseWriter, src io.Reader) error {
			_, err := w.(io.ReaderFrom).ReadFrom(src)
			return err
		},
		"empty": func(w http.ResponseWriter, src io.Reader) error {
			_, err := io.Copy(w, io.LimitReader(src, 0))
			return err
		},
	} {
		for protocol, start := range protocols {
			t.Run(protocol+" "+name, func(t *testing.T) {
				srv := start(t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
					if err := copyTo(w, &lazy{strings.NewReader("rows"), func() { wrote(s, 77) }}); err != nil {
						t.Error(err)
					}
					if name == "empty" {
						wrote(s, 77)
					}
				}))
				wantWrite(t, tokenOf(t, get(t, srv, nil)), 77)
			})
		}
	}
}

// Informational headers are not those of the response.
func TestWritesAfterEarlyHints(t *testing.T) {
	srv := serve(t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
		w.WriteHeader(http.StatusEarlyHints)
		wrote(s, 77)
	}), false)
	wantWrite(t, tokenOf(t, get(t, srv, nil)), 77)
}

// Somebody outside recovers, and answers for the handler.
func TestPanicAfterAWrite(t *testing.T) {
	inner := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		wrote(s, 77)
		panic("bug")
	})
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != "bug" {
				t.Error("the panic did not come through")
			}
			w.WriteHeader(500)
		}()
		inner.ServeHTTP(w, r)
	}), false)
	wantWrite(t, tokenOf(t, get(t, srv, nil)), 77)
}

func TestHijackFindsTheHeaders(t *testing.T) {
	leakcheck.Check(t)
	srv := serve(t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
		wrote(s, 77)
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n")
		_ = w.Header().Write(rw)
		fmt.Fprintf(rw, "\r\n")
		_ = rw.Flush()
	}), false)
	defer srv.Client().CloseIdleConnections()
	resp := get(t, srv, func(r *http.Request) {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "x")
	})
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("have status %d", resp.StatusCode)
	}
	wantWrite(t, tokenOf(t, resp), 77)
}

// What is below is what a handler finds: no ability is lost, none made up.
func TestAbilities(t *testing.T) {
	can := func(w http.ResponseWriter) (all string) {
		if _, ok := w.(http.Flusher); ok {
			all += "flush "
		}
		if _, ok := w.(interface{ FlushError() error }); ok {
			all += "flusherror "
		}
		if _, ok := w.(http.Hijacker); ok {
			all += "hijack "
		}
		if _, ok := w.(http.Pusher); ok {
			all += "push "
		}
		return all
	}
	type plain struct{ http.ResponseWriter }
	rec := httptest.NewRecorder()
	for name, c := range map[string]struct {
		below http.ResponseWriter
		want  string
	}{
		"nothing":        {plain{rec}, ""},
		"flush":          {rec, "flush flusherror "},
		"behind another": {&writer{ResponseWriter: rec}, "flush flusherror "},
		"hijack": {struct {
			plain
			http.Hijacker
		}{plain{rec}, nil}, "hijack "},
		"push": {struct {
			plain
			http.Flusher
			http.Pusher
		}{plain{rec}, rec, nil}, "flush flusherror push "},
		"all": {struct {
			plain
			http.Flusher
			http.Hijacker
			http.Pusher
		}{plain{rec}, rec, nil, nil}, "flush flusherror hijack push "},
		"only errors": {struct {
			plain
			onlyFlushError
		}{plain{rec}, onlyFlushError{}}, "flush flusherror "},
	} {
		if have := can((&writer{ResponseWriter: c.below}).shaped()); have != c.want {
			t.Errorf("%s: have %q, want %q", name, have, c.want)
		}
	}
	for protocol, want := range map[string]string{"HTTP/1": "flush flusherror hijack ", "HTTP/2": "flush flusherror push "} {
		srv := protocols[protocol](t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
			if have := can(w); have != want {
				t.Errorf("%s: have %q, want %q", protocol, have, want)
			}
			c := http.NewResponseController(w)
			if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)), c.Flush()); err != nil {
				t.Errorf("%s: %v", protocol, err)
			}
		}))
		get(t, srv, nil)
	}
}

// gin's streams ask for it.
func TestCloseNotify(t *testing.T) {
	type closeNotifier interface{ CloseNotify() <-chan bool }
	srv := serve(t, wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, _ *session.Session) {
		if w.(closeNotifier).CloseNotify() == nil {
			t.Error("the server's own was not found")
		}
	}), false)
	get(t, srv, nil)
	if (&writer{ResponseWriter: httptest.NewRecorder()}).CloseNotify() != nil {
		t.Error("have a channel that nobody serves")
	}
}

type onlyFlushError struct{}

func (onlyFlushError) FlushError() error { return nil }

func TestPushIsHandedOn(t *testing.T) {
	var got string
	p := pusherFunc(func(target string, _ *http.PushOptions) error { got = target; return nil })
	w := (&writer{ResponseWriter: struct {
		http.ResponseWriter
		http.Flusher
		http.Pusher
	}{httptest.NewRecorder(), httptest.NewRecorder(), p}, before: func() {}}).shaped()
	if err := w.(http.Pusher).Push("/style.css", nil); err != nil || got != "/style.css" {
		t.Errorf("have %q, %v", got, err)
	}
}

type pusherFunc func(string, *http.PushOptions) error

func (f pusherFunc) Push(target string, opts *http.PushOptions) error { return f(target, opts) }

// A server's file system copies files past the program; that must stay so.
func TestFilesAreCopiedByTheSystem(t *testing.T) {
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var below readerFrom
	w := &writer{ResponseWriter: &below, before: func() {}}
	for _, src := range []io.Reader{f, io.LimitReader(f, 10)} {
		if _, err := w.ReadFrom(src); err != nil || below.got != src {
			t.Errorf("have %v given on, %v, want %v", below.got, err, src)
		}
		w.sent = false
	}
	if _, err := io.Copy(w, f); err != nil || !isFile(below.got) {
		t.Errorf("io.Copy: have %T given on, %v, want a file", below.got, err)
	}
}

type readerFrom struct {
	http.ResponseWriter
	got io.Reader
}

func (r *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.got = src
	return 0, nil
}

func TestHeadersAreWrittenBackOnce(t *testing.T) {
	n := 0
	w := &writer{ResponseWriter: httptest.NewRecorder(), before: func() { n++ }}
	for range 2 {
		w.WriteHeader(200)
		_, _ = w.Write([]byte("x"))
		_, _ = w.WriteString("x")
		_, _ = w.ReadFrom(bufio.NewReader(strings.NewReader("x")))
	}
	if n != 1 {
		t.Errorf("have %d times, want once", n)
	}
}

// Some libraries switch protocols by a status before they hijack.
func TestSwitchingProtocolsIsAnAnswer(t *testing.T) {
	n := 0
	w := &writer{ResponseWriter: httptest.NewRecorder(), before: func() { n++ }}
	w.WriteHeader(http.StatusContinue)
	if n != 0 {
		t.Error("100 is taken for the answer")
	}
	w.WriteHeader(http.StatusSwitchingProtocols)
	if n != 1 {
		t.Error("101 is not taken for the answer")
	}
}
