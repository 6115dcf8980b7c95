package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// ErrNotInstalled is returned by methods that need db.Use first.
var ErrNotInstalled = errors.New("gorm-ryw: plugin is not installed: call db.Use first")

// ErrNoPosition is returned by WaitReplicated for a token with a mark that cannot be
// resolved, because the primary does not answer.
var ErrNoPosition = policy.ErrNoPosition

// Pick returns a connection to a server that has everything tok covers, for code
// without GORM: to a replica that has it, or gets it within Config.MaxWait, else to
// the primary. It stays good for as long as the connection lives. Close it to give it
// back. It is for reads: nothing that is done on it is captured, and no session learns
// of it. Errors are the pool's, and ErrStalePrimary or ErrNotMonotonic as for a read.
func (p *Plugin) Pick(ctx context.Context, tok token.Token) (*sql.Conn, error) {
	layer, err := p.installed()
	if err != nil {
		return nil, err
	}
	conn, err := layer.Pick(ctx, session.New(tok))
	if err != nil {
		return nil, fmt.Errorf("gorm-ryw: pick: %w", err)
	}
	return conn, nil
}

// WaitReplicated waits until the replicas have everything tok covers, or ctx ends: for
// bulk writers, which it keeps from outrunning the replicas. A replica that is down, or
// whose position is not proven, is not waited for, and without replicas it returns at
// once. The error says which replica was behind by how much, and wraps ctx's cause.
func (p *Plugin) WaitReplicated(ctx context.Context, tok token.Token) error {
	layer, err := p.installed()
	if err != nil {
		return err
	}
	set := layer.ReadSet()
	if set == nil {
		return nil
	}
	if err := p.router.WaitReplicated(ctx, set, session.New(tok)); err != nil {
		return fmt.Errorf("gorm-ryw: %w", err)
	}
	return nil
}

func (p *Plugin) installed() (*callbacks.Layer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return nil, ErrNotInstalled
	}
	return p.layer, nil
}
