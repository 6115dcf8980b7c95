package rywtest

import (
	"context"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	for range 3 {
		b := time.Now()
		c, err := Start(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("start", time.Since(b))
		b = time.Now()
		if err := c.WaitReplicated(t.Context()); err != nil {
			t.Error(err)
		}
		t.Log("wait", time.Since(b))
		b = time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		t.Log("close", time.Since(b))
	}
}
