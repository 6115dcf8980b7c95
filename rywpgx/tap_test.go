package rywpgx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// message is one of the protocol's.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

var (
	ready  = message('Z', "I")
	notice = message('N', "SNOTICE\x00Mhello\x00\x00")
	notify = message('A', "\x00\x00\x00\x01channel\x00payload\x00")
	status = message('S', "TimeZone\x00UTC\x00")
	rows   = message('T', "\x00\x00") + message('D', "\x00\x01\x00\x00\x00\x01x") + message('C', "SELECT 1\x00")
	query  = message('Q', "select 1\x00")
	parse  = message('P', "\x00select 1\x00\x00\x00") + message('D', "S\x00") + message('S', "")
	bind   = message('B', "\x00\x00\x00\x00\x00\x00\x00\x00") + message('E', "\x00\x00\x00\x00\x00") + message('S', "")

	lsn = message('V', "\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x02") + ready
)

func fails(severity string) string {
	return message('E', "S"+severity+"\x00V"+severity+"\x00C57014\x00Mno\x00\x00")
}

// script is a server that has answered already.
type script struct {
	rest   string
	pieces func(left int) int // how much a Read returns
	sent   bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := min(len(b), max(1, s.pieces(len(s.rest))), len(s.rest))
	copy(b, s.rest[:n])
	s.rest = s.rest[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error) { return s.sent.Write(b) }

func whole(left int) int { return left }

var calls = watcher.Question{Calls: []uint32{2852}}

// asked returns a tap through which packets were sent, each with a question that
// is told as "first", "behind" or "" for none.
func asked(t *testing.T, s *script, packets, how []string) (*tap, []*question) {
	t.Helper()
	tp := newTap(s, s)
	var qs []*question
	for i, p := range packets {
		if how[i] != "" {
			q := &question{}
			q.prepare(calls, how[i] == "first", nil)
			tp.ask.Store(q)
			qs = append(qs, q)
		}
		if n, err := tp.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, len(p), err)
		}
	}
	return tp, qs
}

func encoded(q watcher.Question) string { return string(encode(q)) }

func TestTapSendsTheQuestionWithTheStatement(t *testing.T) {
	ask := encoded(calls)
	for name, c := range map[string]struct{ packets, how, want []string }{
		"behind a query":        {[]string{query}, []string{"behind"}, []string{query + ask}},
		"behind an execute":     {[]string{bind}, []string{"behind"}, []string{bind + ask}},
		"not behind a parse":    {[]string{parse, bind}, []string{"behind", ""}, []string{parse, bind + ask}},
		"first, before a parse": {[]string{parse, bind}, []string{"first", ""}, []string{ask + parse, bind}},
		"first, before a query": {[]string{query}, []string{"first"}, []string{ask + query}},
		"not with a goodbye":    {[]string{message('X', "")}, []string{"behind"}, []string{message('X', "")}},
		"not with a close":      {[]string{message('C', "Sx\x00") + message('S', "")}, []string{"first"}, []string{message('C', "Sx\x00") + message('S', "")}},
		"not with half of one":  {[]string{query[:8]}, []string{"behind"}, []string{query[:8]}},
		"none":                  {[]string{query, bind}, []string{"", ""}, []string{query, bind}},
	} {
		s := &script{}
		_, _ = asked(t, s, c.packets, c.how)
		if have, want := s.sent.String(), strings.Join(c.want, ""); have != want {
			t.Errorf("%s: sent %q, want %q", name, have, want)
		}
	}
}

// answers are what a server sends for packets, and what of it is for pgx.
var answers = map[string]struct {
	packets, how, sent, forPgx []string
}{
	"none":             {[]string{query}, []string{""}, []string{rows, ready}, []string{rows, ready}},
	"behind":           {[]string{query}, []string{"behind"}, []string{rows, ready, lsn}, []string{rows, ready}},
	"behind an error":  {[]string{bind}, []string{"behind"}, []string{fails("ERROR"), ready, lsn}, []string{fails("ERROR"), ready}},
	"first":            {[]string{query}, []string{"first"}, []string{lsn, rows, ready}, []string{rows, ready}},
	"first of a parse": {[]string{parse, bind}, []string{"first", ""}, []string{lsn, ready, rows, ready}, []string{ready, rows, ready}},
	"two in turn":      {[]string{query, query}, []string{"behind", "behind"}, []string{rows, ready, lsn, rows, ready, lsn}, []string{rows, ready, rows, ready}},
	"then none":        {[]string{query, query}, []string{"behind", ""}, []string{rows, ready, lsn, rows, ready}, []string{rows, ready, rows, ready}},
	"asynchronous messages around": {
		[]string{query},
		[]string{"behind"},
		[]string{notice, rows, notify, ready, status, lsn[:17], notify, notice, lsn[17:], notify},
		[]string{notice, rows, notify, ready, status, notify, notice, notify},
	},
	"two messages in one packet": {
		[]string{query + query}, []string{"behind"}, []string{rows, ready, rows, ready, lsn}, []string{rows, ready, rows, ready},
	},
	"the end of the connection": {
		[]string{query}, []string{"behind"}, []string{rows, ready, fails("FATAL")}, []string{rows, ready, fails("FATAL")},
	},
}

// pgx sees what is meant for it, byte by byte, in whatever pieces it comes.
func TestTapTakesTheAnswerOut(t *testing.T) {
	ways := map[string]func(int) int{"whole": whole, "bytes": func(int) int { return 1 }, "random": func(left int) int { return 1 + rand.IntN(left) }}
	for name, c := range answers {
		for way, pieces := range ways {
			s := &script{rest: strings.Join(c.sent, ""), pieces: pieces}
			tp, _ := asked(t, s, c.packets, c.how)
			have, err := io.ReadAll(readerOf{tp, 1 + rand.IntN(100)})
			if want := strings.Join(c.forPgx, ""); err != nil || string(have) != want {
				t.Errorf("%s, %s: have %q, %v, want %q", name, way, have, err, want)
			}
		}
	}
}

// readerOf reads into buffers of one size.
type readerOf struct {
	r    io.Reader
	size int
}

func (r readerOf) Read(b []byte) (int, error) { return r.r.Read(b[:min(len(b), r.size)]) }

func FuzzTapSplits(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(9))
	f.Fuzz(func(t *testing.T, sizes []byte, buffer uint8) {
		for name, c := range answers {
			i := 0
			s := &script{rest: strings.Join(c.sent, ""), pieces: func(int) int {
				if len(sizes) == 0 {
					return 1
				}
				i++
				return int(sizes[i%len(sizes)])
			}}
			tp, _ := asked(t, s, c.packets, c.how)
			have, err := io.ReadAll(readerOf{tp, 1 + int(buffer)})
			if want := strings.Join(c.forPgx, ""); err != nil || string(have) != want {
				t.Errorf("%s: have %q, %v, want %q", name, have, err, want)
			}
		}
	})
}

func TestTapKeepsTheAnswer(t *testing.T) {
	s := &script{rest: rows + ready + lsn, pieces: whole}
	tp, qs := asked(t, s, []string{query}, []string{"behind"})
	if _, err := io.ReadAll(tp); err != nil {
		t.Fatal(err)
	}
	q := qs[0]
	if q.open() || q.err != nil || len(q.row) != 1 || string(q.row[0]) != "\x00\x00\x00\x01\x00\x00\x00\x02" {
		t.Errorf("have %+v", q)
	}
}

func TestTapKeepsTheServersError(t *testing.T) {
	s := &script{rest: ready + fails("ERROR") + ready, pieces: whole}
	tp, qs := asked(t, s, []string{query}, []string{"behind"})
	have, err := io.ReadAll(tp)
	var pg *pgconn.PgError
	if err != nil || string(have) != ready || !errors.As(qs[0].err, &pg) || pg.Code != "57014" {
		t.Errorf("have %q, %v, %v", have, err, qs[0].err)
	}
}

// A question that was to go with a statement in SQL has a row for its answer.
func TestTapAsksInSQL(t *testing.T) {
	s := &script{rest: rows + ready + message('T', "\x00\x00") + message('D', "\x00\x02\x00\x00\x00\x0212\xff\xff\xff\xff") + message('C', "SELECT 1\x00") + ready, pieces: whole}
	tp := newTap(s, s)
	q := &question{}
	q.prepare(watcher.Question{SQL: "select 1"}, false, nil)
	tp.ask.Store(q)
	if _, err := tp.Write([]byte(query)); err != nil {
		t.Fatal(err)
	}
	have, err := io.ReadAll(tp)
	if err != nil || string(have) != rows+ready || s.sent.String() != query+query {
		t.Errorf("have %q, %v, sent %q", have, err, s.sent.String())
	}
	if len(q.row) != 2 || string(q.row[0]) != "12" || q.row[1] != nil {
		t.Errorf("have %q, want 12 and NULL", q.row)
	}
}

// A packet that was not sent at all may be sent again by pgx.
func TestTapThatCannotSend(t *testing.T) {
	for _, first := range []bool{true, false} {
		refused := errors.New("refused")
		tp := newTap(nil, writerFunc(func([]byte) (int, error) { return 0, refused }))
		q := &question{}
		q.prepare(calls, first, nil)
		tp.ask.Store(q)
		if n, err := tp.Write([]byte(query)); n != 0 || !errors.Is(err, refused) || q.sent {
			t.Errorf("have %d, %v, sent %v", n, err, q.sent)
		}
		// Behind the first byte it is not known how far the server got.
		tp = newTap(nil, writerFunc(func([]byte) (int, error) { return len(q.messages) + 1, refused }))
		q.prepare(calls, first, nil)
		tp.ask.Store(q)
		n, err := tp.Write([]byte(query))
		if want := map[bool]int{true: 1, false: len(query)}[first]; n != want || !errors.Is(err, refused) || !q.sent {
			t.Errorf("have %d, %v, sent %v, want %d", n, err, q.sent, want)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// wait reads from the connection itself when pgx has its answer already.
func TestTapWaits(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	tp := newTap(client, client)
	q := &question{}
	q.prepare(calls, false, nil)
	tp.ask.Store(q)
	sent := make(chan error, 1)
	later := make(chan struct{})
	go func() {
		buf := make([]byte, 1024)
		_, err := server.Read(buf)
		for _, part := range []string{rows + ready, lsn[:9]} {
			if err == nil {
				_, err = io.WriteString(server, part)
			}
		}
		<-later
		if err == nil {
			_, err = io.WriteString(server, lsn[9:]+notify)
		}
		sent <- err
	}()
	if _, err := tp.Write([]byte(query)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(rows+ready))
	if _, err := io.ReadFull(tp, buf); err != nil {
		t.Fatal(err)
	}
	var network net.Error
	if err := tp.wait(q, client, time.Millisecond); !errors.As(err, &network) || !network.Timeout() || !q.open() {
		t.Errorf("have %v, want a timeout", err)
	}
	close(later)
	if err := tp.wait(q, client, time.Minute); err != nil || q.open() {
		t.Errorf("have %v", err)
	}
	buf = make([]byte, len(notify))
	if _, err := io.ReadFull(tp, buf); err != nil || string(buf) != notify {
		t.Errorf("have %q, %v, want the notification", buf, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := tp.wait(q, client, 0); err != nil {
		t.Errorf("what has come: have %v, want it at once", err)
	}
}

// Nobody waits while pgx still has to read its own answer.
func TestTapDoesNotWaitForPgx(t *testing.T) {
	client, server := net.Pipe()
	var reader sync.WaitGroup
	defer reader.Wait()
	defer client.Close()
	defer server.Close()
	reader.Go(func() { _, _ = io.Copy(io.Discard, server) })
	tp := newTap(client, client)
	q := &question{}
	q.prepare(calls, false, nil)
	tp.ask.Store(q)
	if _, err := tp.Write([]byte(query)); err != nil {
		t.Fatal(err)
	}
	if err := tp.wait(q, client, time.Minute); !errors.Is(err, errNoAnswer) {
		t.Errorf("have %v, want %v", err, errNoAnswer)
	}
}

func TestTapNoticesForeignStatements(t *testing.T) {
	s := &script{}
	tp := newTap(s, s)
	for _, c := range []struct {
		busy   bool
		packet string
		want   bool
	}{
		{false, query, true}, {true, query, false}, {false, bind, true}, {false, parse, false}, {false, message('X', ""), false},
	} {
		tp.busy.Store(c.busy)
		if _, err := tp.Write([]byte(c.packet)); err != nil {
			t.Fatal(err)
		}
		if have := tp.foreign.Swap(false); have != c.want {
			t.Errorf("%q, busy %v: have %v, want %v", c.packet, c.busy, have, c.want)
		}
	}
}

// The encoding is the one pgx would send.
func TestQuestionsAreMessages(t *testing.T) {
	want, err := (&pgproto3.FunctionCall{Function: 2852, ResultFormatCode: 1}).Encode(nil)
	if err != nil || string(want) != encoded(calls) {
		t.Errorf("have %q, want %q, %v", encoded(calls), want, err)
	}
	want, err = (&pgproto3.Query{String: "select 1"}).Encode(nil)
	if have := encoded(watcher.Question{SQL: "select 1"}); err != nil || string(want) != have {
		t.Errorf("have %q, want %q, %v", have, want, err)
	}
}

func BenchmarkTapPassesOn(b *testing.B) {
	answer := strings.Repeat(message('D', "\x00\x01\x00\x00\x00\x20"+strings.Repeat("x", 32)), 100)
	s := &script{pieces: whole}
	tp := newTap(s, s)
	buf := make([]byte, 8192)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		s.rest = answer
		for s.rest != "" {
			if _, err := tp.Read(buf); err != nil {
				b.Fatal(err)
			}
		}
	}
}
