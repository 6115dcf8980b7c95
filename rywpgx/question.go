package rywpgx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

var (
	errNotAsked = errors.New("the position was not asked for")
	errNoAnswer = errors.New("the answer with the position did not come")
)

// question asks for a position, in messages that travel in the same packet as one
// of the application's.
type question struct {
	messages []byte // Query or FunctionCall messages (PostgreSQL manual, 55.7)
	asks     watcher.Question
	first    bool   // it goes before the application's message instead of behind it
	settle   func() // called when the answer is complete, if not nil

	sent  bool
	begun mono.Instant // when it was sent
	ready int          // how many of the messages are still to be answered
	row   [][]byte
	err   error // the server's
}

// open reports whether an answer is still to come.
func (q *question) open() bool { return q.sent && q.ready > 0 }

// prepare makes q ready to be sent.
func (q *question) prepare(asks watcher.Question, first bool, settle func()) {
	if q.asks.SQL != asks.SQL || !slices.Equal(q.asks.Calls, asks.Calls) {
		q.messages = encode(asks)
	}
	q.asks, q.first, q.settle = asks, first, settle
	q.sent, q.begun, q.row, q.err = false, 0, nil, nil
	q.ready = max(1, len(asks.Calls))
}

func encode(asks watcher.Question) (b []byte) {
	for _, oid := range asks.Calls {
		b = append(b, msgCall, 0, 0, 0, 14)
		b = binary.BigEndian.AppendUint32(b, oid)
		b = append(b, 0, 0, 0, 0, 0, 1) // no formats, no arguments, a binary result
	}
	if len(asks.Calls) > 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32([]byte{msgQuery}, uint32(len(asks.SQL)+5))
	return append(append(b, asks.SQL...), 0)
}

// sample returns the position, or why there is none.
func (q *question) sample(p *watcher.Probe) (watcher.Sample, error) {
	switch {
	case !q.sent:
		return watcher.Sample{}, errNotAsked
	case q.ready > 0:
		return watcher.Sample{}, errNoAnswer
	}
	return p.Answer(q.asks, q.row, q.err, q.begun)
}

// take takes up one message of the answer. It reports whether the message is also
// for the application: it was not caused by the question, or ends the connection.
func (q *question) take(message []byte) (forward bool) {
	body := message[headLen:]
	switch message[0] {
	case msgDataRow:
		q.takeRow(body)
	case msgResult:
		q.takeResult(body)
	case msgError:
		return q.takeError(body)
	case msgNotice, msgNotification, msgParameter:
		return true
	case msgReady:
		if q.ready--; q.ready == 0 && q.settle != nil {
			q.settle()
		}
	}
	return false
}

func (q *question) takeRow(body []byte) {
	var d pgproto3.DataRow
	if err := d.Decode(body); err != nil {
		q.fail(err)
		return
	}
	for _, v := range d.Values {
		q.row = append(q.row, bytes.Clone(v))
	}
}

func (q *question) takeResult(body []byte) {
	var r pgproto3.FunctionCallResponse
	if err := r.Decode(body); err != nil {
		q.fail(err)
		return
	}
	q.row = append(q.row, bytes.Clone(r.Result))
}

func (q *question) takeError(body []byte) (fatal bool) {
	var e pgproto3.ErrorResponse
	if err := e.Decode(body); err != nil {
		q.fail(err)
		return false
	}
	q.fail(pgconn.ErrorResponseToPgError(&e))
	return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
}

func (q *question) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}
