package token_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

func Example() {
	orders := token.Key{System: 7421938451230987654}
	minted := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	// The first service writes and hands the token on as text.
	text := token.FromEntries(token.Entry{
		Key: orders, Write: token.Position{Timeline: 2, LSN: 0x3000060}, Minted: minted,
	}).String()
	fmt.Println(text)

	// The second one reads further and keeps both.
	tok, err := token.Parse(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	tok = tok.With(token.Entry{Key: orders, Floor: token.Position{Timeline: 2, LSN: 0x3000148}})
	for i := range tok.Len() {
		e := tok.At(i)
		fmt.Println("write", e.Write, "floor", e.Floor)
	}
	// Output:
	// r1.ASVnAAWywm-VhgIAAAADAABggJSUysoz
	// write 2:0/3000060 floor 2:0/3000148
}

// After a promotion the newer timeline counts, although its LSN is lower. The
// older write is kept until it was compared with the point of promotion.
func ExampleToken_Merge() {
	orders := token.Key{System: 7421938451230987654}
	before := token.FromEntries(token.Entry{Key: orders, Write: token.Position{Timeline: 1, LSN: 0x9000000}})
	after := token.FromEntries(token.Entry{Key: orders, Write: token.Position{Timeline: 2, LSN: 0x8000028}})

	e, _ := before.Merge(after).Entry(orders)
	fmt.Println("write", e.Write, "former", e.Former)
	fmt.Println(after.Merge(before).Equal(before.Merge(after)))
	// Output:
	// write 2:0/8000028 former 1:0/9000000
	// true
}

// A writer that does not know the cluster leaves a mark. A reader that does know
// it resolves the mark into its own entry; the mark stays for other clusters.
func ExampleToken_Replace() {
	orders := token.Key{System: 7421938451230987654}
	tok := token.Token{}.Mark(token.Key{}, token.Marks{Wrote: true}, time.Time{})
	fmt.Println("pending:", tok.BroadPending(orders))

	// The position of the primary, asked for after the token was received.
	tok = tok.Replace(token.Entry{
		Key: orders, Write: token.Position{Timeline: 1, LSN: 0x3000060}, BroadCovered: true,
	})
	fmt.Println("pending:", tok.BroadPending(orders))

	// Somebody else wrote without knowing the cluster.
	tok = tok.Mark(token.Key{}, token.Marks{Wrote: true}, time.Time{})
	fmt.Println("pending:", tok.BroadPending(orders))
	// Output:
	// pending: true
	// pending: false
	// pending: true
}

func ExampleParse() {
	tok, err := token.Parse("A2C/FE118820") // as psql shows it
	fmt.Println(tok.At(0).Write, err)

	_, err = token.Parse("r1.AS1gAQ")
	fmt.Println(errors.Is(err, token.ErrInvalid), err)
	// Output:
	// A2C/FE118820 <nil>
	// true invalid token: entry 1, payload byte 2: system is cut off
}

func ExampleSigner() {
	signer, err := token.NewSigner(token.Secret{ID: "k1", Key: []byte("32 random bytes from your vault.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := signer.Sign(token.FromLSN(0x3000060))
	fmt.Println(text)

	tok, err := signer.Verify(text)
	fmt.Println(tok.At(0).Write, err)
	_, err = signer.Verify(token.FromLSN(0x3000060).String())
	fmt.Println(errors.Is(err, token.ErrSignature), err)
	// Output:
	// r1.AQQAAAAAAwAAYA.k1.A1Y6ZQxQDQ0yxRy8AOqCIf_H4Ei7aCOQ5Y3Du5e9zaQ
	// 0/3000060 <nil>
	// true invalid token: signature: none on "r1.AQQAAAA"...
}

func ExampleToken_MarshalText() {
	claims := struct {
		Subject string      `json:"sub"`
		Token   token.Token `json:"ryw"`
	}{"user-7", token.FromLSN(0x3000060)}
	raw, err := json.Marshal(claims)
	fmt.Println(string(raw), err)
	// Output:
	// {"sub":"user-7","ryw":"r1.AQQAAAAAAwAAYA"} <nil>
}

func ExampleParseLSN() {
	lsn, err := token.ParseLSN("A2C/FE118820")
	fmt.Println(lsn, uint64(lsn), err)
	// Output:
	// A2C/FE118820 11188357400608 <nil>
}

func ExampleKey_Constrains() {
	orders := token.Key{System: 7421938451230987654, Name: token.NameHash("orders")}
	fmt.Println(token.Key{}.Constrains(orders))
	fmt.Println(token.Key{Name: token.NameHash("orders")}.Constrains(orders))
	fmt.Println(token.Key{Name: token.NameHash("stock")}.Constrains(orders))
	// Output:
	// true
	// true
	// false
}
