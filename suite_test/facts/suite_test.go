// Package facts_test re-measures what the library's safety rests on: how a real
// primary and real streaming replicas behave. Nothing here is a promise of the
// library. A spec that fails says that this PostgreSQL differs from what the
// design assumes, and the design has to be thought through again before that
// version can be called supported.
//
// Specs prefer constructions that leave no choice, such as a replica that must
// not apply commits, to racing for a window of time.
package facts_test

import (
	"context"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func TestFacts(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	RunSpecs(t, "What PostgreSQL does")
}

const patience = 30 * time.Second

// cluster is a primary with two replicas that most specs share, and leave as they
// found it. A spec that changes roles or crashes servers starts its own.
var cluster *rywtest.Cluster

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = startCluster(ctx, rywtest.Options{Replicas: 2})
	learnServer(ctx, dial(ctx, cluster.Primary()))
})

// startCluster starts a cluster with the tables, which ends with the spec,
// container or suite. Without autovacuum nobody writes but the specs, and now and
// then the server itself.
func startCluster(ctx context.Context, o rywtest.Options) *rywtest.Cluster {
	GinkgoHelper()
	settings := map[string]string{"autovacuum": "off"}
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	c, err := rywtest.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Close()).To(Succeed()) })
	createTables(ctx, c)
	return c
}

// nobody is a role without any privilege but to read the tables.
const nobody = "reader"

func createTables(ctx context.Context, c *rywtest.Cluster) {
	GinkgoHelper()
	conn := dial(ctx, c.Primary())
	exec(ctx, conn, `create table facts (id bigint primary key, v bigint not null default 1)`)
	exec(ctx, conn, `create table parts (fact bigint references facts deferrable initially deferred)`)
	exec(ctx, conn, `create role `+nobody+` login`)
	exec(ctx, conn, `grant select on facts to `+nobody)
	replicated(ctx, c)
}
