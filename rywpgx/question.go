package rywpgx

import (
	"encoding/binary"
	"errors"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

var (
	errNotAsked  = errors.New("the position was not asked for")
	errNoAnswer  = errors.New("the answer with the position did not come")
	errBadAnswer = errors.New("the answer with the position is not one row")
)

// question is a position query that travels in the same packet as a message of
// the application's.
type question struct {
	message []byte // a Query message (PostgreSQL manual, 55.7)
	text    string // its statement
	first   bool   // it goes before the application's message instead of behind it
	settle  func() // called when the answer is complete, if not nil

	sent  bool
	begun mono.Instant // when it was sent
	done  bool         // the answer is complete
	row   [][]byte
	err   error // the server's
}

// open reports whether an answer is still to come.
func (q *question) open() bool { return q.sent && !q.done }

// prepare makes q ready to be sent.
func (q *question) prepare(text string, first bool, settle func()) {
	if q.text != text {
		q.text = text
		q.message = binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(text)+5))
		q.message = append(append(q.message, text...), 0)
	}
	q.first, q.settle = first, settle
	q.sent, q.done, q.begun, q.row, q.err = false, false, 0, nil, nil
}

// result returns the row, or why there is none.
func (q *question) result() ([][]byte, error) {
	switch {
	case !q.sent:
		return nil, errNotAsked
	case !q.done:
		return nil, errNoAnswer
	case q.err != nil:
		return nil, q.err
	case q.row == nil:
		return nil, errBadAnswer
	}
	return q.row, nil
}

// take takes up one message of the answer. It reports whether the message is also
// for the application: it was not caused by the question, or ends the connection.
func (q *question) take(message []byte) (forward bool) {
	body := message[headLen:]
	switch message[0] {
	case msgDataRow:
		q.takeRow(body)
	case msgError:
		var e pgproto3.ErrorResponse
		if q.err = e.Decode(body); q.err == nil {
			q.err = pgconn.ErrorResponseToPgError(&e)
		}
		return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
	case msgNotice, msgNotification, msgParameter:
		return true
	case msgReady:
		q.done = true
		if q.settle != nil {
			q.settle()
		}
	}
	return false
}

func (q *question) takeRow(body []byte) {
	var d pgproto3.DataRow
	if err := d.Decode(body); err != nil {
		q.err = err
		return
	}
	q.row = make([][]byte, len(d.Values))
	for i, v := range d.Values {
		q.row[i] = append([]byte(nil), v...)
	}
}
