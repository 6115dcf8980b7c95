package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// behind is how far the last replica is made to lag in the second half.
const behind = 4 * time.Second

// servers are where the story plays.
type servers struct {
	cluster *rywtest.Cluster // nil for the user's own servers
	dsns    []string         // the primary's first
	names   []string
}

func openServers(ctx context.Context, f flags) (*servers, error) {
	if f.primary != "" || len(f.replicas) > 0 {
		return ownServers(f)
	}
	began := time.Now()
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 2})
	if err != nil {
		return nil, err
	}
	fmt.Printf("Started a primary and two replicas in %s.\n\n", time.Since(began).Round(time.Millisecond))
	s := &servers{cluster: c}
	s.add(c.Primary())
	for _, r := range c.Replicas() {
		s.add(r)
	}
	return s, nil
}

func (s *servers) add(r *rywtest.Server) {
	s.dsns = append(s.dsns, r.DSN())
	s.names = append(s.names, fmt.Sprintf("%s:%d", r.Host(), r.Port()))
}

func ownServers(f flags) (*servers, error) {
	if f.primary == "" || len(f.replicas) == 0 {
		return nil, errors.New("-primary and -replica: want both or none")
	}
	s := &servers{dsns: append([]string{f.primary}, f.replicas...)}
	for i := range s.dsns {
		if i == 0 {
			s.names = append(s.names, "(yours)")
			continue
		}
		s.names = append(s.names, fmt.Sprintf("%d (yours)", i))
	}
	return s, nil
}

// lag makes the last replica replay each commit late.
func (s *servers) lag(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	rs := s.cluster.Replicas()
	return rs[len(rs)-1].SetApplyDelay(ctx, behind)
}

// checkLag makes sure that the replica really was behind: what it shows now was
// replaced on the primary at least three seconds ago.
func (s *servers) checkLag(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	rs := s.cluster.Replicas()
	conn, err := rs[len(rs)-1].Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var seconds float64
	err = conn.QueryRow(ctx, "select extract(epoch from clock_timestamp() - max(written)) from ryw_quickstart").Scan(&seconds)
	if err != nil {
		return err
	}
	if seconds < 3 {
		return fmt.Errorf("the replica that should lag is %.1fs behind, want at least 3s", seconds)
	}
	fmt.Printf("At the end that replica was %.1fs behind.\n", seconds)
	return nil
}

func (s *servers) close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	db, err := gorm.Open(postgres.Open(s.dsns[0]), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return errors.Join(db.Migrator().DropTable(&note{}), pool.Close())
}
