package rywtest

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestSmoke2(t *testing.T) {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() { fmt.Println(s.Name(), s.Log()) }
	_ = time.Now
	c.Close()
}
