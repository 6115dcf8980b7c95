package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// lags are how far the replicas are behind.
var lags = []time.Duration{0, 300 * time.Millisecond, 2 * time.Second}

// site is everything that the demonstration started.
type site struct {
	cluster *rywtest.Cluster
	apps    []*process
	others  []*process // the reader and the worker
}

func demo(ctx context.Context, serve string) (err error) {
	s := &site{}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx, len(lags), ""); err != nil {
		return err
	}
	for i, lag := range lags {
		if err := s.cluster.Replica(i).SetApplyDelay(ctx, lag); err != nil {
			return err
		}
		r := s.cluster.Replica(i)
		fmt.Printf("replica %s:%d is %s behind\n", r.Host(), r.Port(), lag)
	}
	front := httptest.NewServer(roundRobin(s.apps...))
	defer front.Close()
	if err := tour(ctx, front.URL+"/notes/1"); err != nil {
		return err
	}
	if serve == "" {
		return nil
	}
	l, err := net.Listen("tcp", serve)
	if err != nil {
		return err
	}
	fmt.Printf("\nhttp://%s/notes/1 for a browser; Ctrl-C ends it\n", strings.Replace(l.Addr().String(), "[::]", "localhost", 1))
	return serveUntil(ctx, l, roundRobin(s.apps...))
}

// start starts a cluster and the processes; drop names a hop that loses the token.
func (s *site) start(ctx context.Context, replicas int, drop string) (err error) {
	s.cluster, err = rywtest.Start(ctx, rywtest.Options{Replicas: replicas})
	if err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	c := config{primary: s.cluster.Primary().DSN(), drop: drop}
	var dsns []string
	for _, r := range s.cluster.Replicas() {
		dsns = append(dsns, r.DSN())
	}
	c.replicas = strings.Join(dsns, "|")
	c.role, c.name = "reader", "reader"
	reader, err := start(c)
	if err != nil {
		return err
	}
	s.others = append(s.others, reader)
	c.reader = reader.line
	for _, name := range []string{"A", "B"} {
		c.role, c.name = "app", name
		p, err := start(c)
		if err != nil {
			return err
		}
		s.apps = append(s.apps, p)
	}
	c.role, c.name = "worker", "worker"
	worker, err := start(c)
	if err != nil {
		return err
	}
	s.others = append(s.others, worker)
	return nil
}

func (s *site) migrate(ctx context.Context) error {
	conn, err := s.cluster.Primary().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `create table notes (id bigint primary key, text text not null);
		insert into notes values (1, 'old');
		create table jobs (id bigserial primary key, payload jsonb not null, done boolean not null,
			saw text not null, "where" text not null)`)
	if err != nil {
		return err
	}
	return s.cluster.WaitReplicated(ctx)
}

func (s *site) stop() error {
	var errs []error
	for _, p := range append(s.apps, s.others...) {
		errs = append(errs, p.stop())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Close())
	}
	return errors.Join(errs...)
}

// tour is one browser's visit: it saves and looks, eight times each.
func tour(ctx context.Context, url string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\nTHE BROWSER\tSHOWN\tPROCESS\tREAD FROM\tWHY")
	for i := range 8 {
		want := fmt.Sprintf("version %d", i+1)
		for _, step := range []struct{ did, method, path string }{
			{"saves " + want, http.MethodPatch, ""}, {"looks again", http.MethodGet, ""}, {"looks elsewhere", http.MethodGet, "/elsewhere"},
		} {
			v, err := visit(ctx, browser, step.method, url+step.path, want)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", step.did, v.Text, v.Process, v.Node, v.Why)
			if v.Text != want {
				return fmt.Errorf("the browser saved %q and is shown %q", want, v.Text)
			}
		}
	}
	return nil
}

// visit sends one request, follows where it is sent, and returns what is shown.
func visit(ctx context.Context, browser *http.Client, method, url, text string) (v seen, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return v, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := browser.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("%s: status %s", method, resp.Status)
	}
	return v, json.NewDecoder(resp.Body).Decode(&v)
}
