package proxy_test

import (
	"fmt"
	"log"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// A network of half a millisecond each way before a server.
func Example() {
	p, err := proxy.New("127.0.0.1:5432", proxy.Options{Delay: 500 * time.Microsecond})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	before := p.Counters()
	// … talk to p.Addr() …
	fmt.Println(p.Counters().RoundTrips-before.RoundTrips, "round trips")
}
