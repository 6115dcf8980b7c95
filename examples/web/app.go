package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"google.golang.org/grpc"
)

// app is one process of the web site.
type app struct {
	config
	store  *store
	reader *grpc.ClientConn
}

func runApp(ctx context.Context, c config) (err error) {
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	conn, err := dialReader(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// Browsers keep cookies; who has none has written nothing. Plain HTTP is for
	// this machine only.
	ryw, err := rywhttp.New(rywhttp.Config{Missing: rywhttp.MissingStale, Cookie: rywhttp.Cookie{Insecure: true}})
	if err != nil {
		return err
	}
	site := (&app{config: c, store: s, reader: conn}).routes()
	if c.drop != "app" {
		site = ryw.Wrap(site)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr()) // for the parent
	return serveUntil(ctx, l, site)
}

func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(ending)
	})
	if err := srv.Serve(l); stop() {
		return err
	}
	return <-stopped
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/notes/1", http.StatusFound))
	mux.HandleFunc("PATCH /notes/{id}", a.patch)
	mux.HandleFunc("POST /notes/{id}", a.patch) // what an HTML form can send
	mux.HandleFunc("GET /notes/{id}", a.get(a.store.load))
	mux.HandleFunc("GET /notes/{id}/elsewhere", a.get(func(ctx context.Context, id int64) (seen, error) {
		return askReader(ctx, a.reader, id)
	}))
	return mux
}

// patch writes the note and sends the browser to look at it, which the proxy has
// another process answer.
func (a *app) patch(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		http.Error(w, "no such note", http.StatusNotFound)
		return
	}
	text := r.FormValue("text")
	if text == "" {
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err != nil {
			http.Error(w, "text too long", http.StatusRequestEntityTooLarge)
			return
		}
		text = string(raw)
	}
	if err := a.store.save(r.Context(), &Note{ID: id, Text: text}, a.drop == "job"); err != nil {
		http.Error(w, "not saved", http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Process", a.name)
	http.Redirect(w, r, fmt.Sprintf("/notes/%d", id), http.StatusSeeOther)
}

// get shows a note as load finds it.
func (a *app) get(load func(context.Context, int64) (seen, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.Error(w, "no such note", http.StatusNotFound)
			return
		}
		v, err := load(r.Context(), id)
		if err != nil {
			http.Error(w, "not read", http.StatusInternalServerError)
			return
		}
		a.show(w, r, v)
	}
}

func (a *app) show(w http.ResponseWriter, r *http.Request, v seen) {
	if v.Process == "" {
		v.Process = a.name
	}
	if r.Header.Get("Accept") == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client is gone
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, v) // the client is gone
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<title>A note</title>
<style>body{font:1.2rem/1.6 sans-serif;max-width:40rem;margin:4rem auto}td{padding-right:2rem}</style>
<h1>{{.Text}}</h1>
<table>
<tr><td>answered by process<td><b>{{.Process}}</b>
<tr><td>which read from<td><b>{{.Node}}</b>
<tr><td>because<td>{{.Why}}
</table>
<form method="post" action="/notes/1"><input name="text" value="{{.Text}}" autofocus> <button>Save</button></form>
<p>Save, and you are sent to this page again, by another process. Reload it, and it may
come from a replica that has caught up with what you saved. In another browser, which
has not written anything, you may see what was here before. A second service reads it
<a href="/notes/1/elsewhere">over gRPC</a>.
`))
