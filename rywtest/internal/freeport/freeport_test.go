package freeport

import (
	"net"
	"testing"
)

func TestReservedPortIsNotGivenTwice(t *testing.T) {
	p, err := Reserve()
	must(t, err)
	if q := try(p.Number()); q != nil {
		t.Fatalf("port %d was reserved twice", p.Number())
	}
	p.Release()
	q := try(p.Number())
	if q == nil {
		t.Fatalf("port %d is still reserved after Release", p.Number())
	}
	q.Release()
}

func TestReservedPortCanBeListenedOn(t *testing.T) {
	p, err := Reserve()
	must(t, err)
	defer p.Release()
	l, err := net.Listen("tcp", p.Addr())
	if err != nil {
		t.Fatalf("a reserved port must be free for its owner: %v", err)
	}
	must(t, l.Close())
}

func TestForeignListenerIsAvoided(t *testing.T) {
	p, err := Reserve()
	must(t, err)
	l, err := net.Listen("tcp", p.Addr())
	must(t, err)
	defer func() { must(t, l.Close()) }()
	p.Release()
	if q := try(p.Number()); q != nil {
		q.Release()
		t.Fatalf("port %d was reserved while somebody listens on it", p.Number())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
