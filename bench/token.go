package main

import (
	"context"
	"errors"
	"fmt"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// tokens tells how long a token's text is: after a write, and after a read of a
// replica in the same session, whose position is still to be found out.
func tokens(ctx context.Context, e *env, r *report) error {
	written, read, err := e.tokenTexts(ctx)
	if err != nil {
		return err
	}
	r.figure("token.text.bytes", float64(len(written)), "bytes")
	r.figure("token.text.bytes.after_read", float64(len(read)), "bytes")
	return nil
}

func (e *env) tokenTexts(ctx context.Context) (written, read string, err error) {
	a, err := openPlugin(ctx, e.addresses(), gorm.Config{}, rywplugin.Config{})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	tok, err := a.caughtUp(ctx)
	if err != nil {
		return "", "", err
	}
	s := session.New(tok)
	tx := a.WithContext(session.NewContext(ctx, s)).First(&item{}, seeded.ID)
	if tx.Error != nil {
		return "", "", tx.Error
	}
	if why := rywplugin.Explain(tx); !why.Replica {
		return "", "", fmt.Errorf("read went to %s, want a replica", why)
	}
	return tok.String(), s.Token().String(), nil
}
