package rywredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/redis/go-redis/v9"
)

// Defaults of Config.
const (
	// DefaultPrefix is Config.Prefix.
	DefaultPrefix = "ryw:"
	// DefaultAge is Config.Age: that of tokens.
	DefaultAge = rywhttp.DefaultCookieAge
)

// ErrConfig is wrapped by the error of New for a Config that makes no sense.
var ErrConfig = errors.New("rywredis: invalid configuration")

// Config configures a Store. The zero value is valid.
type Config struct {
	// Prefix stands before every key. Empty: DefaultPrefix.
	Prefix string
	// Age is how long a key lives after its last Put. It should not be less than the
	// longest time that a replica of PostgreSQL may lag. Zero: DefaultAge.
	Age time.Duration

	_ struct{}
}

// Store is a rywhttp.Store. Made by New. Safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	cfg    Config
}

var _ rywhttp.Store = (*Store)(nil)

// New returns a store that uses client, which stays the caller's to close.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if cfg.Age == 0 {
		cfg.Age = DefaultAge
	}
	switch {
	case client == nil:
		return nil, fmt.Errorf("%w: client: have nil", ErrConfig)
	case cfg.Age < time.Second:
		return nil, fmt.Errorf("%w: Age: have %s, want 1s or more", ErrConfig, cfg.Age)
	}
	return &Store{client: client, cfg: cfg}, nil
}

// Load implements rywhttp.Store.
func (s *Store) Load(ctx context.Context, key string) ([]string, error) {
	texts, err := s.client.SMembers(ctx, s.cfg.Prefix+key).Result()
	if err != nil {
		return nil, fmt.Errorf("rywredis: load: %w", err)
	}
	return texts, nil
}

// Put implements rywhttp.Store.
func (s *Store) Put(ctx context.Context, key, text string, includes []string) error {
	key = s.cfg.Prefix + key
	gone := make([]any, 0, len(includes))
	for _, old := range includes {
		if old != text {
			gone = append(gone, old)
		}
	}
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, key, text)
		if len(gone) > 0 {
			p.SRem(ctx, key, gone...)
		}
		p.PExpire(ctx, key, s.cfg.Age)
		return nil
	})
	if err != nil {
		return fmt.Errorf("rywredis: put: %w", err)
	}
	return nil
}
