package suite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// underTokens is an application whose requests carry the token as text.
type underTokens struct{ db *gorm.DB }

func (u underTokens) do(ctx context.Context, text string, op func(db *gorm.DB) (workload.Answer, error)) (workload.Answer, error) {
	s := session.New()
	if text != "" {
		tok, err := token.Parse(text)
		if err != nil {
			return workload.Answer{}, err
		}
		s.Observe(tok)
	}
	a, err := op(u.db.WithContext(session.NewContext(ctx, s)))
	a.Token = s.Token().String()
	return a, err
}

func (u underTokens) Write(ctx context.Context, text string, key int64) (workload.Answer, error) {
	return u.do(ctx, text, func(db *gorm.DB) (workload.Answer, error) { return plainWrite(db, key) })
}

func (u underTokens) Read(ctx context.Context, text string, key int64) (workload.Answer, error) {
	return u.do(ctx, text, func(db *gorm.DB) (workload.Answer, error) { return plainRead(db, key) })
}

// patient is underTokens of an application that asks again when the primary does not
// show yet what was seen, as on a machine that is too busy for a second's wait.
type patient struct{ underTokens }

func (p patient) Write(ctx context.Context, text string, key int64) (a workload.Answer, err error) {
	return again(func() (workload.Answer, error) { return p.underTokens.Write(ctx, text, key) })
}

func (p patient) Read(ctx context.Context, text string, key int64) (workload.Answer, error) {
	return again(func() (workload.Answer, error) { return p.underTokens.Read(ctx, text, key) })
}

// again repeats what did nothing: the error comes before anything is sent.
func again(do func() (workload.Answer, error)) (a workload.Answer, err error) {
	for range 10 {
		if a, err = do(); !errors.Is(err, rywplugin.ErrNotMonotonic) {
			break
		}
	}
	return a, err
}

// withoutTokens is the same application on dbresolver alone.
type withoutTokens struct{ db *gorm.DB }

func (w withoutTokens) Write(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return plainWrite(w.db.WithContext(ctx), key)
}

func (w withoutTokens) Read(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	return plainRead(w.db.WithContext(ctx), key)
}

func plainWrite(db *gorm.DB, key int64) (workload.Answer, error) {
	var it Item
	err := db.Transaction(func(tx *gorm.DB) error {
		return tx.Raw("update items set v = v + 1 where id = ? returning *", key).Scan(&it).Error
	})
	return workload.Answer{Version: it.V}, err
}

func plainRead(db *gorm.DB, key int64) (workload.Answer, error) {
	var it Item
	err := db.Select("items.*, "+who).Limit(1).Find(&it, key).Error
	return workload.Answer{Version: it.V, Server: it.Server, Replica: it.Replica}, err
}

var _ = Describe("Sixteen sessions under random load, with replay pausing and going on", func() {
	const sessions, keys = 16, 4
	options := func(ctx context.Context, operations int) workload.Options {
		o := workload.Options{
			Sessions: sessions, Operations: operations, Keys: keys, FirstKey: newID.Add(sessions * keys),
			Writes: 0.2, Elsewhere: 0.2, Handover: 0.01, Seed: uint64(GinkgoRandomSeed()),
		}
		conn, err := cluster.Primary().Conn(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "insert into items (id, v) select id, 1 from generate_series($1::bigint, $2::bigint) id",
			o.FirstKey, o.FirstKey+sessions*keys-1)
		Expect(err).NotTo(HaveOccurred())
		newID.Add(sessions * keys)
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		return o
	}

	run := func(ctx context.Context, t workload.Target, operations int) (*workload.Stats, history.Result) {
		GinkgoHelper()
		o := options(ctx, operations)
		stop := pausing(ctx, int64(o.Seed))
		h, stats, err := workload.Run(ctx, t, o)
		stop()
		Expect(err).NotTo(HaveOccurred())
		result := history.Check(h, history.Options{})
		AddReportEntry("result", fmt.Sprintf("seed %d, %.0f%% of reads from replicas\n%s", o.Seed, 100*stats.ReplicaShare(), result.String()))
		return stats, result
	}

	It("breaks neither read-your-writes nor monotonic reads", func(ctx SpecContext) {
		stats, result := run(ctx, underTokens{newApp(ctx).DB}, 20_000)
		Expect(result.Ok()).To(BeTrue(), result.String())
		Expect(result.LostWrites).To(BeEmpty())
		Expect(stats.Writes + stats.Reads).To(BeNumerically(">=", 20_000))
		Expect(stats.ReplicaShare()).To(BeNumerically(">=", 0.5))
		GinkgoWriter.Printf("blind spots excused: %d\n", len(result.BlindSpots))
	})

	It("has no blind spot in mode Strict", func(ctx SpecContext) {
		strict := mode(rywplugin.Config{Monotonic: rywplugin.MonotonicStrict})
		stats, result := run(ctx, patient{underTokens{newApp(ctx, strict).DB}}, 8_000)
		Expect(result.Ok()).To(BeTrue(), result.String())
		Expect(result.BlindSpots).To(BeEmpty())
		Expect(stats.ReplicaShare()).To(BeNumerically(">=", 0.3))
	})

	It("is seen to break both on dbresolver alone", func(ctx SpecContext) {
		_, result := run(ctx, withoutTokens{newPlain()}, 20_000)
		Expect(result.ReadYourWrites).NotTo(BeEmpty())
		Expect(result.Monotonic).NotTo(BeEmpty())
	})
})

// pausing pauses and resumes replay on one replica after the other, until the
// function it returns is called.
func pausing(ctx context.Context, seed int64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer GinkgoRecover()
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		for ctx.Err() == nil {
			r := cluster.Replica(rng.IntN(2))
			_ = r.PauseReplay(ctx) // fails when the run is over
			pause(ctx, time.Duration(50+rng.IntN(250))*time.Millisecond)
			_ = r.ResumeReplay(context.WithoutCancel(ctx))
			pause(ctx, time.Duration(50+rng.IntN(250))*time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
