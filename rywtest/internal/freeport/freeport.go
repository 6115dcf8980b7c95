// Package freeport reserves TCP ports for servers that are started, stopped and
// started again, while other test processes do the same.
//
// Two habits make it hold. Ports come from below the range that systems give to
// outgoing connections, so that a stopped server's port is not taken by a
// client. And the UDP port of the same number is kept bound as a token: it
// excludes every other process that reserves this way, needs no file, and ends
// with the process.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// First and Last bound the ports handed out.
const (
	First = 20000
	Last  = 32767
)

// ErrNone is returned when no port is free.
var ErrNone = errors.New("freeport: no free port")

// Port is a reserved TCP port of 127.0.0.1.
type Port struct {
	number int
	token  net.PacketConn
}

// Reserve finds a port nobody listens on and keeps it until Release.
func Reserve() (*Port, error) {
	const count = Last - First + 1
	from := rand.IntN(count)
	for i := range count {
		if p := try(First + (from+i)%count); p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w between %d and %d", ErrNone, First, Last)
}

func try(number int) *Port {
	token, err := net.ListenPacket("udp4", address(number))
	if err != nil {
		return nil
	}
	probe, err := net.Listen("tcp4", address(number))
	if err != nil {
		_ = token.Close()
		return nil
	}
	_ = probe.Close()
	return &Port{number: number, token: token}
}

func address(number int) string { return fmt.Sprintf("127.0.0.1:%d", number) }

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Addr is the port's address, host:port.
func (p *Port) Addr() string { return address(p.number) }

// Release gives the port back. It may be called again.
func (p *Port) Release() {
	_ = p.token.Close()
}
