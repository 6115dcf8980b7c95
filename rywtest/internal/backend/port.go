package backend

import (
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/freeport"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// ReplacePort gives up a port that another program has taken for a new one, which
// the proxy before the server, if there is one, then leads to.
func ReplacePort(taken *freeport.Port, before *proxy.Proxy) (*freeport.Port, error) {
	port, err := freeport.Reserve()
	if err != nil {
		return taken, err
	}
	taken.Release()
	if before != nil {
		before.SetTarget(port.Addr())
	}
	return port, nil
}
