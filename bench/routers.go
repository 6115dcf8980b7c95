package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
	"gorm.io/gorm"
)

// router is a way to send reads to replicas, as an application under load. What its
// sessions carry is text of its own.
type router interface {
	workload.Target
	close() error
}

// contender makes a router for one run.
type contender struct {
	name string
	open func(ctx context.Context, s *site, t *truth) (router, error)
}

// Names that the goals refer to.
const (
	nameDBResolver = "dbresolver"
	nameOracle     = "oracle"
	nameOurs       = "ryw"
	nameOursPgx    = "ryw.rywpgx"
)

// contenders are compared in every scenario. All but the library and dbresolver are
// the least program for the idea, on the same GORM and pools; each captures by one
// query after the commit if it needs a position, and keeps read-your-writes only.
var contenders = []contender{
	{"primary", openPrimaryOnly},
	{nameDBResolver, openDBResolver},
	{"pin_5s", openPin},
	{"one_candidate", openOneCandidate},
	{"in_turn", openInTurn},
	{"all_caught_up", openAllCaughtUp},
	{"poll_100ms", openPoll},
	{nameOracle, openOracle},
	{nameOurs, openOurs},
	{nameOursPgx, openOursPgx},
}

// handles are one GORM for each server, each with a pool of its own.
type handles struct {
	primary  *gorm.DB
	replicas []*gorm.DB
}

// idleConns keeps connections: opening them is not what is compared.
const idleConns = 64

func openHandles(at addresses) (h *handles, err error) {
	h = &handles{}
	if h.primary, err = openHandle(at, at.primary); err != nil {
		return nil, err
	}
	for _, dsn := range at.replicas {
		r, err := openHandle(at, dsn)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.replicas = append(h.replicas, r)
	}
	return h, nil
}

func openHandle(at addresses, dsn string) (*gorm.DB, error) {
	at.primary = dsn
	a, err := open(at, gorm.Config{})
	if err != nil {
		return nil, err
	}
	pool, err := a.DB.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxIdleConns(idleConns)
	return a.DB, nil
}

func (h *handles) close() error {
	var errs []error
	for _, db := range append([]*gorm.DB{h.primary}, h.replicas...) {
		if db == nil {
			continue
		}
		pool, err := db.DB()
		if err == nil {
			err = pool.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// any draws a replica.
func (h *handles) any() *gorm.DB { return h.replicas[rand.IntN(len(h.replicas))] }

// writeRow raises the version of a row by one.
func writeRow(db *gorm.DB, key int64) (workload.Answer, error) {
	var r row
	err := db.Transaction(func(tx *gorm.DB) error {
		return tx.Raw("update bench_rows set v = v + 1 where id = ? returning *", key).Scan(&r).Error
	})
	return workload.Answer{Version: r.V}, err
}

// readRow reads a row.
func readRow(db *gorm.DB, key int64) (workload.Answer, *gorm.DB) {
	var r row
	tx := db.Select("bench_rows.*, "+whoAnswers).Limit(1).Find(&r, key)
	return workload.Answer{Version: r.V, Server: strconv.Itoa(r.Port), Replica: r.Replica}, tx
}

func readFrom(ctx context.Context, db *gorm.DB, token string, key int64) (workload.Answer, error) {
	a, tx := readRow(db.WithContext(ctx), key)
	a.Token = token
	return a, tx.Error
}

// primaryOnly reads on the primary.
type primaryOnly struct{ *handles }

func openPrimaryOnly(_ context.Context, s *site, _ *truth) (router, error) {
	h, err := openHandles(s.addresses(false))
	return primaryOnly{h}, err
}

func (p primaryOnly) Write(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return writeRow(p.primary.WithContext(ctx), key)
}

func (p primaryOnly) Read(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return readFrom(ctx, p.primary, "", key)
}

// plain is dbresolver with the policy it has by default: any replica.
type plain struct{ *app }

func openDBResolver(_ context.Context, s *site, _ *truth) (router, error) {
	a, err := openPlain(s.addresses(false), gorm.Config{})
	if err != nil {
		return nil, err
	}
	return plain{a}, a.keepIdle()
}

func (p plain) Write(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return writeRow(p.WithContext(ctx), key)
}

func (p plain) Read(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return readFrom(ctx, p.DB, "", key)
}

// pin reads on the primary for some seconds after a write of the session, whose
// token is the time of that.
type pin struct{ *handles }

const pinned = 5 * time.Second

func openPin(_ context.Context, s *site, _ *truth) (router, error) {
	h, err := openHandles(s.addresses(false))
	return pin{h}, err
}

func (p pin) Write(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	a, err := writeRow(p.primary.WithContext(ctx), key)
	a.Token = strconv.FormatInt(time.Now().UnixNano(), 10)
	return a, err
}

func (p pin) Read(ctx context.Context, token string, key int64) (workload.Answer, error) {
	if token != "" {
		nanos, err := strconv.ParseInt(token, 10, 64)
		if err != nil {
			return workload.Answer{}, fmt.Errorf("token: %w", err)
		}
		if time.Since(time.Unix(0, nanos)) < pinned {
			return readFrom(ctx, p.primary, token, key)
		}
	}
	return readFrom(ctx, p.any(), token, key)
}
