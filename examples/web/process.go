package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// process is this program, started once more.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	line  string // the first one it printed: that it is ready, and where
}

func start(c config) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, c.args()...)}
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), asChild+"=1")
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", c.name, err), p.stop())
	}
	p.line = strings.TrimSpace(line)
	return p, nil
}

// asChild is for the tests, whose binary is not this program unless it is told so.
const asChild = "RYW_WEB_CHILD"

// stop ends the process, which notices that its standard input ends, and waits.
func (p *process) stop() error {
	return errors.Join(p.stdin.Close(), p.cmd.Wait())
}

// roundRobin is a proxy that gives each request to the next process.
func roundRobin(apps ...*process) http.Handler {
	var next atomic.Uint64
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		p := apps[(next.Add(1)-1)%uint64(len(apps))]
		r.SetURL(&url.URL{Scheme: "http", Host: p.line})
		r.Out.Host = r.In.Host
	}}
}
