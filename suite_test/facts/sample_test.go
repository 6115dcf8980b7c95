package facts_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// sampleOf takes two samples on one connection: a primary's second one has the
// short form.
func sampleOf(ctx context.Context, s *rywtest.Server, user string) (long, short watcher.Sample) {
	GinkgoHelper()
	probe := watcher.NewProbe(dialAs(ctx, s, user))
	long, err := probe.Take(ctx)
	Expect(err).NotTo(HaveOccurred())
	short, err = probe.Take(ctx)
	Expect(err).NotTo(HaveOccurred())
	return long, short
}

var _ = Describe("The library's position query", func() {
	for _, user := range []string{"postgres", nobody} {
		It("tells what servers of both roles are and where, asked by "+user, func(ctx SpecContext) {
			p := dial(ctx, cluster.Primary())
			system := get[int64](ctx, p, "select system_identifier from pg_control_system()")
			for _, s := range cluster.Servers() {
				_, pos := write(ctx, p)
				replicated(ctx, cluster)
				long, short := sampleOf(ctx, s, user)
				Expect(long.Standby).To(Equal(s != cluster.Primary()))
				for _, have := range []watcher.Sample{long, short} {
					Expect(have.Standby).To(Equal(long.Standby))
					Expect(have.Paused).To(BeFalse())
					Expect(have.Pooled).To(BeFalse())
					Expect(have.System).To(BeEquivalentTo(system))
					Expect(have.Position.Timeline).To(BeEquivalentTo(1))
					Expect(have.Position.LSN).To(BeNumerically(">=", pos))
					Expect(have.Incarnation).To(Equal(long.Incarnation))
				}
				again, _ := sampleOf(ctx, s, nobody)
				Expect(again.Incarnation).To(Equal(long.Incarnation), "on another connection")
			}
		})
	}

	It("tells servers apart, and a pause", func(ctx SpecContext) {
		seen := map[any]bool{}
		for _, s := range cluster.Servers() {
			long, _ := sampleOf(ctx, s, nobody)
			seen[long.Incarnation] = true
		}
		Expect(seen).To(HaveLen(3))
		pause(ctx, cluster.Replica(0))
		long, _ := sampleOf(ctx, cluster.Replica(0), nobody)
		Expect(long.Paused).To(BeTrue())
	})
})
