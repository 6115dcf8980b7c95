// Package suite_test proves the library's guarantees on a real primary and real
// streaming replicas, through the same calls that an application makes. Each
// guarantee has a control beside it that shows the stale read without the
// plugin, so that a test is known to bite.
package suite_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "gorm-ryw on real replicas")
}

// cluster is a primary with two replicas that most specs share. A spec that
// breaks servers for good starts its own.
var cluster *rywtest.Cluster

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = startCluster(ctx, rywtest.Options{Replicas: 2})
	createTables(ctx, cluster)
})

var _ = BeforeEach(func(ctx SpecContext) { heal(ctx, cluster) })

// startCluster starts a cluster that ends with the container or suite.
func startCluster(ctx context.Context, o rywtest.Options) *rywtest.Cluster {
	GinkgoHelper()
	c, err := rywtest.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Close()).To(Succeed()) })
	return c
}

// heal has every replica replay again and waits until it has caught up.
func heal(ctx context.Context, c *rywtest.Cluster) {
	GinkgoHelper()
	for _, r := range c.Replicas() {
		Expect(r.ResumeReplay(ctx)).To(Succeed())
	}
	Expect(c.WaitReplicated(ctx)).To(Succeed())
}

// pauseAll stops replay on every replica: whatever is written from now on can be
// read on the primary only.
func pauseAll(ctx context.Context) {
	GinkgoHelper()
	Expect(cluster.WaitReplicated(ctx)).To(Succeed())
	for _, r := range cluster.Replicas() {
		Expect(r.PauseReplay(ctx)).To(Succeed())
	}
}

const patience = 10 * time.Second
