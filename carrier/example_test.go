package carrier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func Example() {
	// Where the message is sent: ctx has the session of a request that wrote.
	ctx := session.NewContext(context.Background(), session.New(token.FromLSN(0x3000060)))
	payload, err := carrier.InjectJSON(ctx, []byte(`{"order_id":7}`))
	fmt.Println(string(payload), err)

	// Where it is worked on.
	work, err := carrier.ExtractJSON(context.Background(), payload)
	s, _ := session.FromContext(work)
	fmt.Println(s.Token().At(0).Write, err) // db.WithContext(work).First(&order) sees it

	// A message that somebody has dropped the token of.
	strict := &carrier.Carrier{Missing: carrier.MissingRefused}
	_, err = strict.ExtractJSON(context.Background(), []byte(`{"order_id":7}`))
	fmt.Println(errors.Is(err, carrier.ErrMissing))
	// Output:
	// {"order_id":7,"consistency_token":"r1.AQQAAAAAAwAAYA"} <nil>
	// 0/3000060 <nil>
	// true
}

// A job's own type carries the token in a field.
func ExampleResume() {
	type shipOrder struct {
		OrderID int64       `json:"order_id"`
		Token   token.Token `json:"consistency_token,omitzero"`
	}
	args, err := json.Marshal(shipOrder{7, token.FromLSN(0x3000060)}) // rywplugin.Token(tx)
	fmt.Println(string(args), err)

	var job shipOrder
	err = json.Unmarshal(args, &job)
	ctx := carrier.Resume(context.Background(), job.Token)
	fmt.Println(carrier.Token(ctx).Equal(job.Token), err)
	// Output:
	// {"order_id":7,"consistency_token":"r1.AQQAAAAAAwAAYA"} <nil>
	// true <nil>
}

// mqHeaders adapts the headers of a broker's client that has neither Get nor Set.
type mqHeaders map[string]any

func (h mqHeaders) Get(key string) string { s, _ := h[key].(string); return s }
func (h mqHeaders) Set(key, value string) { h[key] = value }

func ExampleInjectHeaders() {
	ctx := session.NewContext(context.Background(), session.New(token.FromLSN(0x3000060)))
	headers := mqHeaders{}
	carrier.InjectHeaders(ctx, headers)
	fmt.Println(headers)

	work, err := carrier.ExtractHeaders(context.Background(), headers)
	fmt.Println(carrier.Token(work).At(0).Write, err)
	// Output:
	// map[X-Consistency-Token:r1.AQQAAAAAAwAAYA]
	// 0/3000060 <nil>
}

// Claims are signed by whoever makes the JWT out of them.
func ExampleInjectMap() {
	ctx := session.NewContext(context.Background(), session.New(token.FromLSN(0x3000060)))
	claims := map[string]any{"sub": "user-7"}
	carrier.InjectMap(ctx, claims)
	fmt.Println(claims["consistency_token"])
	// Output:
	// r1.AQQAAAAAAwAAYA
}
