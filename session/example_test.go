package session_test

import (
	"context"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Two processes take turns at one user's work.
func Example() {
	orders := token.Key{System: 7421938451230987654}

	// The first one has written; db.WithContext(ctx) does this.
	ctx := session.NewContext(context.Background(), session.New())
	s, _ := session.FromContext(ctx)
	s.Observe(token.FromEntries(token.Entry{Key: orders, Write: token.Position{Timeline: 1, LSN: 0x3000060}}))
	text := s.Token().String()

	// The second one goes on, and has read further.
	tok, err := token.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	other := session.New(tok)
	other.Observe(token.FromEntries(token.Entry{Key: orders, Floor: token.Position{Timeline: 1, LSN: 0x3000148}}))

	e, _ := other.Token().Entry(orders)
	fmt.Println("write", e.Write, "floor", e.Floor)
	// Output:
	// write 1:0/3000060 floor 1:0/3000148
}

// What a carrier of tokens sends back is decided by what a session did meanwhile.
func ExampleSession_Watch() {
	s := session.New()
	watch := s.Watch()
	fmt.Println(watch.Changes().Wrote)

	s.MarkWrote(token.Key{}) // a write whose position is not known yet
	fmt.Println(watch.Changes().Wrote, watch.Changes().Token.IsZero())
	// Output:
	// false
	// true false
}

// A collector gathers what is done with a context, without being honoured by reads.
func ExampleCollect() {
	var tok token.Token
	ctx := session.Collect(context.Background(), &tok)
	_, honoured := session.FromContext(ctx)
	fmt.Println(honoured, tok.IsZero())
	// Output:
	// false true
}
