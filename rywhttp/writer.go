package rywhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
)

// writer is the ResponseWriter of a handler. Whatever sends the headers first
// makes it write back what the session did until then. It is used by one
// goroutine at a time, as every ResponseWriter.
type writer struct {
	http.ResponseWriter
	before func() // called once, before the headers are sent
	sent   bool
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) headers() {
	if !w.sent {
		w.sent = true
		w.before()
	}
}

// WriteHeader implements http.ResponseWriter. Informational headers are sent as
// they are; those of the response itself are still to come.
func (w *writer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.headers()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.headers()
	return w.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) {
	w.headers()
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom implements io.ReaderFrom, so that the system copies files by itself.
// Another source may be what queries the database: the headers are sent when its
// first byte is there.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	if !w.sent && !isFile(src) {
		return io.Copy(writeOnly{w}, src)
	}
	w.headers()
	if below, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		return below.ReadFrom(src)
	}
	return io.Copy(w.ResponseWriter, src)
}

// CloseNotify is deprecated, but gin's streams panic without it. Where nothing below
// has it, the channel says nothing; handlers have the request's context.
func (w *writer) CloseNotify() <-chan bool {
	if below, ok := find[interface{ CloseNotify() <-chan bool }](w.ResponseWriter); ok {
		return below.CloseNotify()
	}
	return nil
}

// writeOnly hides ReadFrom.
type writeOnly struct{ io.Writer }

// isFile sees through what io.Copy wraps an *os.File in.
func isFile(src io.Reader) bool {
	if l, ok := src.(*io.LimitedReader); ok {
		src = l.R
	}
	_, ok := src.(interface {
		Stat() (os.FileInfo, error)
		Fd() uintptr
	})
	return ok
}

// flusher, hijacker and pusher are what a writer also is where the one below can
// do it. Handlers find out by asking for the interface.
type (
	flusher  struct{ *writer }
	hijacker struct{ *writer }
	pusher   struct{ p http.Pusher }
)

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is for http.ResponseController.
func (f flusher) FlushError() error {
	f.headers()
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker. What takes the connection over writes its own
// headers; it finds ours in Header.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.headers()
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// Push implements http.Pusher.
func (p pusher) Push(target string, opts *http.PushOptions) error { return p.p.Push(target, opts) }

// shaped returns w with the abilities of what is below.
func (w *writer) shaped() http.ResponseWriter {
	below := w.ResponseWriter
	_, f := find[http.Flusher](below)
	if !f {
		_, f = find[interface{ FlushError() error }](below)
	}
	_, h := find[http.Hijacker](below)
	push, p := find[http.Pusher](below)
	flush, hijack, pushes := flusher{w}, hijacker{w}, pusher{push}
	switch {
	case f && h && p:
		return struct {
			*writer
			flushes
			http.Hijacker
			http.Pusher
		}{w, flush, hijack, pushes}
	case f && h:
		return struct {
			*writer
			flushes
			http.Hijacker
		}{w, flush, hijack}
	case f && p:
		return struct {
			*writer
			flushes
			http.Pusher
		}{w, flush, pushes}
	case f:
		return struct {
			*writer
			flushes
		}{w, flush}
	case h:
		return struct {
			*writer
			http.Hijacker
		}{w, hijack}
	}
	return w
}

type flushes interface {
	http.Flusher
	FlushError() error
}

// find returns the first writer of a chain that is a T, as ResponseController
// would.
func find[T any](w http.ResponseWriter) (T, bool) {
	for {
		if t, ok := w.(T); ok {
			return t, true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			var none T
			return none, false
		}
		w = u.Unwrap()
	}
}
