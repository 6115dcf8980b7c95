package suite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

func fallback(f policy.Fallback) appOption {
	return pluginConfig(func(c *rywplugin.Config) { c.Fallback = f })
}

// delayAll has every replica apply commits ten seconds late, until the spec ends.
func delayAll(ctx context.Context) {
	GinkgoHelper()
	for _, r := range cluster.Replicas() {
		DeferCleanup(func(ctx context.Context) { Expect(r.SetApplyDelay(ctx, 0)).To(Succeed()) })
		Expect(r.SetApplyDelay(ctx, 10*time.Second)).To(Succeed())
	}
}

// killAll kills the replicas until the spec ends.
func killAll(ctx context.Context) {
	GinkgoHelper()
	for _, r := range cluster.Replicas() {
		Expect(r.Kill(ctx)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(r.Start(ctx)).To(Succeed()) })
	}
}

// crowd is many users who write and read back what they wrote.
type crowd struct {
	app     *app
	primary atomic.Int64 // reads that the primary answered
	fresh   atomic.Int64 // that saw what was written
	marked  atomic.Int64 // that did not, and were marked
	shed    atomic.Int64 // that failed with ErrOverloaded
	writes  atomic.Int64
	mu      sync.Mutex
	wrong   []string // protected by mu
}

func (c *crowd) fail(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, what)
}

// run has users at work for a time.
func (c *crowd) run(ctx context.Context, users int, d time.Duration) {
	var all sync.WaitGroup
	ids := make([]int64, users)
	for i := range ids {
		ids[i] = seedWritten(ctx)
	}
	ends := time.Now().Add(d)
	for _, id := range ids {
		all.Go(func() {
			s := session.New()
			for want := int64(1); time.Now().Before(ends); {
				want = c.user(session.NewContext(ctx, s), id, want)
			}
		})
	}
	all.Wait()
}

// seedWritten is seed without waiting for the replicas.
func seedWritten(ctx context.Context) int64 {
	GinkgoHelper()
	id := newID.Add(1)
	conn, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "insert into items (id, v) values ($1, 1)", id)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// user writes once and reads three times.
func (c *crowd) user(ctx context.Context, id, version int64) int64 {
	db := c.app.WithContext(ctx)
	if err := db.Model(&Item{}).Where("id = ?", id).Update("v", gorm.Expr("v + 1")).Error; err != nil {
		c.fail("write: " + err.Error())
		return version
	}
	version++
	c.writes.Add(1)
	for range 3 {
		var it Item
		tx := db.Raw("select /* crowd */ items.*, "+who+" from items, pg_sleep(0.005) where id = ?", id).Scan(&it)
		e := rywplugin.Explain(tx)
		switch {
		case errors.Is(tx.Error, rywplugin.ErrOverloaded):
			c.shed.Add(1)
			continue
		case tx.Error != nil:
			c.fail("read: " + tx.Error.Error())
			continue
		case it.V == version && !e.Stale:
			c.fresh.Add(1)
		case e.Stale:
			c.marked.Add(1)
		default:
			c.fail("stale and not marked: " + e.String())
		}
		if !it.Replica && it.ID != 0 {
			c.primary.Add(1)
		}
	}
	return version
}

// busiest is the greatest number of the crowd's reads that were under way on the
// primary at a time, as the primary itself says, until stop is called.
func busiest(ctx context.Context) (stop func() int) {
	GinkgoHelper()
	conn, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	ended, worst := make(chan struct{}), make(chan int)
	go func() {
		defer GinkgoRecover()
		defer conn.Close(context.Background())
		most := 0
		for {
			select {
			case <-ended:
				worst <- most
				return
			default:
			}
			var n int
			err := conn.QueryRow(ctx, `select count(*) from pg_stat_activity
				where state = 'active' and query like 'select /* crowd */%'`).Scan(&n)
			Expect(err).NotTo(HaveOccurred())
			most = max(most, n)
		}
	}()
	return func() int {
		close(ended)
		return <-worst
	}
}

var _ = Describe("When every replica is behind", Serial, func() {
	const users = 16

	// The control: without caps the primary gets them all.
	It("gives the primary every read where there is no cap", func(ctx SpecContext) {
		c := &crowd{app: newApp(ctx)}
		delayAll(ctx)
		stop := busiest(ctx)
		c.run(ctx, users, time.Second)
		Expect(stop()).To(BeNumerically(">", 3))
		Expect(c.wrong).To(BeEmpty())
		Expect(c.primary.Load()).To(Equal(c.writes.Load() * 3))
		f := c.app.ryw.Status().Clusters[0]
		Expect(f.TokenReads).To(Equal(c.primary.Load()))
		Expect(f.Fallbacks[policy.Behind]).To(Equal(c.primary.Load()))
	})

	It("keeps reads under way on the primary below the cap, and fails the others", func(ctx SpecContext) {
		c := &crowd{app: newApp(ctx, fallback(policy.Fallback{Concurrent: 3, Wait: 20 * time.Millisecond}))}
		delayAll(ctx)
		stop := busiest(ctx)
		c.run(ctx, users, 2*time.Second)
		Expect(stop()).To(And(BeNumerically(">", 1), BeNumerically("<=", 3)))
		Expect(c.wrong).To(BeEmpty())
		Expect(c.shed.Load()).To(BeNumerically(">", 0))
		Expect(c.fresh.Load()).To(BeNumerically(">", 20))
		Expect(c.fresh.Load()).To(Equal(c.primary.Load()))
		Eventually(func() int { return c.app.ryw.Status().Clusters[0].FallingBack }).Should(BeZero())
		f := c.app.ryw.Status().Clusters[0]
		Expect(f.Overloaded).To(Equal(c.shed.Load()))
		Expect(f.TokenReads).To(Equal(c.writes.Load() * 3))
		Expect(c.app.ryw.Status().Reads[policy.Overloaded]).To(Equal(c.shed.Load()))
	})

	It("keeps reads a second on the primary below the cap", func(ctx SpecContext) {
		const rate, burst = 40, 10
		c := &crowd{app: newApp(ctx, fallback(policy.Fallback{Rate: rate, Burst: burst}))}
		delayAll(ctx)
		began := time.Now()
		c.run(ctx, users, 2*time.Second)
		most := burst + rate*time.Since(began).Seconds()
		Expect(c.wrong).To(BeEmpty())
		Expect(c.primary.Load()).To(And(BeNumerically("<=", int64(most)), BeNumerically(">", int64(most/2))))
		Expect(c.shed.Load()).To(BeNumerically(">", 0))
	})

	It("serves stale where that is allowed, never unmarked, and nothing is forgotten", func(ctx SpecContext) {
		c := &crowd{app: newApp(ctx, fallback(policy.Fallback{Concurrent: 2, Wait: rywplugin.NoWait, Stale: true}))}
		id := seed(ctx)
		delayAll(ctx)
		c.run(ctx, users, 2*time.Second)
		Expect(c.wrong).To(BeEmpty())
		Expect(c.shed.Load()).To(BeZero())
		Expect(c.marked.Load()).To(BeNumerically(">", 20))
		Expect(c.app.ryw.Status().Clusters[0].ServedStale).To(Equal(c.marked.Load()))

		s := session.New()
		in := session.NewContext(ctx, s)
		bump(c.app.WithContext(in), id)
		before := s.Token()
		held, err := c.app.WithContext(in).Raw("select 1 from items where id = ?", id).Rows()
		Expect(err).NotTo(HaveOccurred())
		other, err := c.app.WithContext(in).Raw("select 2 from items where id = ?", id).Rows()
		Expect(err).NotTo(HaveOccurred())
		it, tx := read(c.app.WithContext(in), id)
		e := rywplugin.Explain(tx)
		Expect(e.Stale).To(BeTrue(), e.String())
		Expect(e.Reason).To(Equal(policy.ServedStale))
		Expect(e.String()).To(ContainSubstring("STALE"))
		Expect(it.V).To(BeEquivalentTo(1))
		Expect(s.Stale()).To(BeTrue())
		Expect(s.Token().Merge(before).Equal(s.Token())).To(BeTrue(), "the session asks for less")
		Expect(held.Close()).To(Succeed())
		Expect(other.Close()).To(Succeed())
		Eventually(func() int { return c.app.ryw.Status().Clusters[0].FallingBack }).Should(BeZero())
		it, _ = read(c.app.WithContext(in), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})

	It("never sheds what is meant for the primary", func(ctx SpecContext) {
		a, id := newApp(ctx, fallback(policy.Fallback{Concurrent: 1, Wait: rywplugin.NoWait})), seed(ctx)
		pauseAll(ctx)
		in := session.NewContext(ctx, session.New())
		bump(a.WithContext(in), id)
		rows, err := a.WithContext(in).Raw("select 1 from items where id = ?", id).Rows()
		Expect(err).NotTo(HaveOccurred())
		defer rows.Close()
		var it Item
		shed := a.WithContext(in).Take(&it, id)
		Expect(shed.Error).To(MatchError(rywplugin.ErrOverloaded))
		e := rywplugin.Explain(shed)
		Expect(e).To(And(HaveField("Node", "nowhere"), HaveField("Reason", policy.Overloaded), HaveField("Replica", false)))
		Expect(e.Gap).To(BeNumerically(">", 0))
		for range 5 {
			read(a.WithContext(in).Scopes(scopes.Strong()), id)
			read(a.DB, id) // Config.Default is Strong
			bump(a.WithContext(in), id)
			Expect(a.WithContext(in).Transaction(func(tx *gorm.DB) error {
				read(tx, id)
				return tx.Take(&Item{}, id).Error
			})).To(Succeed())
		}
	})

	It("goes on writing with every replica dead", func(ctx SpecContext) {
		c := &crowd{app: newApp(ctx, fallback(policy.Fallback{Concurrent: 2, Wait: rywplugin.NoWait, Stale: true}))}
		killAll(ctx)
		c.run(ctx, users, 2*time.Second)
		Expect(c.wrong).To(BeEmpty())
		Expect(c.writes.Load()).To(BeNumerically(">", 100))
		Expect(c.marked.Load()).To(BeZero(), "nobody is there to be stale")
		Expect(c.shed.Load()).To(BeNumerically(">", 0))
		Eventually(func() int { return c.app.ryw.Status().Clusters[0].FallingBack }).Should(BeZero())
	})
})

var _ = Describe("A read that fell back to the primary is under way", Serial, func() {
	var a *app
	var id int64
	underWay := func() int { return a.ryw.Status().Clusters[0].FallingBack }
	session1 := func(ctx context.Context) *gorm.DB {
		in := session.NewContext(ctx, session.New())
		bump(a.WithContext(in), id)
		return a.WithContext(in)
	}
	BeforeEach(func(ctx SpecContext) {
		a, id = newApp(ctx, fallback(policy.Fallback{Concurrent: 1, Wait: rywplugin.NoWait})), seed(ctx)
		pauseAll(ctx)
	})

	It("until its rows are closed", func(ctx SpecContext) {
		db := session1(ctx)
		rows, err := db.Model(&Item{}).Where("id = ?", id).Rows()
		Expect(err).NotTo(HaveOccurred())
		Expect(underWay()).To(Equal(1))
		Expect(db.Take(&Item{}, id).Error).To(MatchError(rywplugin.ErrOverloaded))
		_, err = db.Model(&Item{}).Where("id = ?", id).Rows() //nolint:sqlclosecheck // there are none
		Expect(err).To(MatchError(rywplugin.ErrOverloaded))
		Expect(db.Model(&Item{}).Where("id = ?", id).Row().Err()).To(MatchError(rywplugin.ErrOverloaded))
		Expect(rows.Next()).To(BeTrue())
		Expect(rows.Close()).To(Succeed())
		Eventually(underWay).Should(BeZero())
		Expect(db.Take(&Item{}, id).Error).To(Succeed())
	})

	It("until its row is scanned", func(ctx SpecContext) {
		db := session1(ctx)
		row := db.Model(&Item{}).Select("v").Where("id = ?", id).Row()
		Expect(underWay()).To(Equal(1))
		var v int64
		Expect(row.Scan(&v)).To(Succeed())
		Expect(v).To(BeEquivalentTo(2))
		Eventually(underWay).Should(BeZero())
	})

	It("until its context ends, if nobody closes its rows", func(ctx SpecContext) {
		c, cancel := context.WithCancel(ctx)
		_, err := session1(c).Model(&Item{}).Rows() //nolint:sqlclosecheck // they are abandoned
		Expect(err).NotTo(HaveOccurred())
		Expect(underWay()).To(Equal(1))
		cancel()
		Eventually(underWay).Should(BeZero())
	})

	It("until it panics", func(ctx SpecContext) {
		// Not in a Scanner: database/sql cannot close its rows any more after that.
		q := a.Callback().Query()
		Expect(q.After("gorm:query").Before("gorm-ryw:observe").Register("bomb", func(*gorm.DB) { panic("bomb") })).To(Succeed())
		Expect(func() { session1(ctx).Take(&Item{}, id) }).To(PanicWith("bomb"))
		Expect(q.Remove("bomb")).To(Succeed())
		Eventually(func() int {
			runtime.GC()
			return underWay()
		}).Should(BeZero())
	})

	It("until it fails", func(ctx SpecContext) {
		db := session1(ctx)
		Expect(db.Where("1/(v-2) = 1").Take(&Item{}, id).Error).To(MatchError(ContainSubstring("division by zero")))
		Expect(db.Where("1/(v-2) = 1").Model(&Item{}).Select("v").Row().Scan(new(int64))).NotTo(Succeed())
		_, err := db.Where("nothing = 1").Model(&Item{}).Rows() //nolint:sqlclosecheck // there are none
		Expect(err).To(HaveOccurred())
		Eventually(underWay).Should(BeZero())
	})

	It("until its read-only transaction ends", func(ctx SpecContext) {
		db := session1(ctx)
		readOnly := &sql.TxOptions{ReadOnly: true}
		tx := db.Begin(readOnly)
		Expect(tx.Error).NotTo(HaveOccurred())
		Expect(underWay()).To(Equal(1))
		Expect(tx.Take(&Item{}, id).Error).To(Succeed(), "inside, nothing is governed")
		Expect(session1(ctx).Begin(readOnly).Error).To(MatchError(rywplugin.ErrOverloaded))
		Expect(tx.Rollback().Error).To(Succeed())
		Eventually(underWay).Should(BeZero())
	})
})

var _ = Describe("While the application runs", Serial, func() {
	tune := func(a *app, change func(*rywplugin.Tuning)) {
		GinkgoHelper()
		Expect(a.ryw.Tune(change)).To(Succeed())
	}

	It("routing can be switched off, loudly, and on again", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		s := session.New()
		db := a.WithContext(session.NewContext(ctx, s))
		readFrom(db, id, true)
		pauseAll(ctx)
		bump(db, id)
		tune(a, func(t *rywplugin.Tuning) { t.Mode = rywplugin.PlainResolver })
		it, tx := read(db, id)
		e := rywplugin.Explain(tx)
		Expect(it).To(And(HaveField("Replica", true), HaveField("V", BeEquivalentTo(1))), "as dbresolver alone")
		Expect(e.Reason).To(Equal(policy.ByResolver), e.String())
		Expect(e.Stale).To(BeTrue())
		it, tx = read(a.DB, id)
		Expect(it.Replica).To(BeTrue(), "whatever the default is")
		Expect(rywplugin.Explain(tx).Stale).To(BeTrue())
		it, _ = read(a.Clauses(dbresolver.Write), id)
		Expect(it.V).To(BeEquivalentTo(2))
		Expect(a.Transaction(func(tx *gorm.DB) error {
			it, _ := read(tx, id)
			Expect(it.Replica).To(BeFalse())
			return nil
		}, &sql.TxOptions{ReadOnly: true})).To(Succeed())

		tune(a, func(t *rywplugin.Tuning) { t.Mode = rywplugin.Normal })
		it, tx = read(db, id)
		Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
		heal(ctx, cluster)
		Expect(readFrom(db, id, true).V).To(BeEquivalentTo(2))
	})

	It("dbresolver's choice does not depend on what is known of the replicas", func(ctx SpecContext) {
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.Mode = rywplugin.PlainResolver })), seed(ctx)
		Expect(a.ryw.Close()).To(Succeed()) // nothing is known any more, and the pools are closed
		b := newApp(ctx, pluginConfig(func(c *rywplugin.Config) {
			c.Mode, c.ProbeTimeout = rywplugin.PlainResolver, time.Millisecond // of which most fail
		}))
		for range 20 {
			it, _ := read(b.DB, id)
			Expect(it.Replica).To(BeTrue())
		}
	})

	It("every read can be sent to the primary", func(ctx SpecContext) {
		a, id := newApp(ctx, fallback(policy.Fallback{Concurrent: 1})), seed(ctx)
		tune(a, func(t *rywplugin.Tuning) { t.Mode = rywplugin.PrimaryOnly })
		db := a.WithContext(session.NewContext(ctx, session.New()))
		bump(db, id)
		for _, db := range []*gorm.DB{db, a.Scopes(scopes.StaleOK()), a.Clauses(dbresolver.Read), a.DB} {
			it, _ := read(db, id)
			Expect(it).To(And(HaveField("Replica", false), HaveField("V", BeEquivalentTo(2))))
		}
		_, tx := read(db, id)
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.ByMode))
		tune(a, func(t *rywplugin.Tuning) { t.Mode = rywplugin.Normal })
		readFrom(db, id, true)
	})

	It("the default, the wait and the caps can be changed", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		tune(a, func(t *rywplugin.Tuning) { t.Default = rywplugin.StaleOK })
		readFrom(a.DB, id, true)
		delayAll(ctx) // not paused: they might come on at any time
		db := a.WithContext(session.NewContext(ctx, session.New()))
		bump(db, id)
		tune(a, func(t *rywplugin.Tuning) { t.MaxWait = 200 * time.Millisecond })
		_, tx := read(db, id)
		Expect(rywplugin.Explain(tx).Waited).To(BeNumerically(">=", 100*time.Millisecond), "more than by default")
		tune(a, func(t *rywplugin.Tuning) {
			t.MaxWait, t.Fallback = rywplugin.NoWait, policy.Fallback{Rate: 0.001, Wait: rywplugin.NoWait}
		})
		read(db, id)
		Expect(db.Take(&Item{}, id).Error).To(MatchError(rywplugin.ErrOverloaded))
		tune(a, func(t *rywplugin.Tuning) { t.Fallback = policy.Fallback{} })
		read(db, id)
	})
})

var _ = Describe("A slow replica", Serial, func() {
	It("leaves rotation, is reported when it stays out, and comes back", func(ctx SpecContext) {
		var log syncBuffer
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.ProbeInterval = 50 * time.Millisecond
			c.Rotation = policy.Rotation{
				High: time.Second, Low: 200 * time.Millisecond, Settle: 500 * time.Millisecond, StuckAfter: 500 * time.Millisecond,
			}
		})), seed(ctx)
		slow := cluster.Replica(1)
		Expect(slow.PauseReplay(ctx)).To(Succeed())
		status := func() rywplugin.NodeStatus { return a.ryw.Status().Nodes[2] }
		Consistently(status).WithTimeout(1500*time.Millisecond).Should(HaveField("Out", BeZero()), "an idle primary makes nobody slow")
		bump(a.DB, id)
		Eventually(status).WithTimeout(patience).Should(HaveField("Out", BeNumerically(">", 0)))
		Expect(status().Lag).To(BeNumerically(">", time.Second))
		for range 50 {
			it, _ := read(a.Scopes(scopes.StaleOK()), id)
			Expect(it).To(And(HaveField("Replica", true), HaveField("V", BeEquivalentTo(2))))
		}
		Eventually(status).WithTimeout(patience).Should(HaveField("Stuck", true))
		Eventually(func() int { return strings.Count(log.String(), "replica is stuck") }).WithTimeout(patience).Should(Equal(1))
		window, known := a.ryw.SuggestWindow()
		Expect(known).To(BeTrue())
		Expect(window).To(BeNumerically(">", 2*time.Second))
		Expect(slow.ResumeReplay(ctx)).To(Succeed())
		Eventually(status).WithTimeout(patience).Should(HaveField("Out", BeZero()))
		Eventually(log.String).WithTimeout(patience).Should(ContainSubstring("back in rotation"))
	})
})

type syncBuffer struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var _ = Describe("A time window", Serial, func() {
	const window = 1500 * time.Millisecond
	windowed := pluginConfig(func(c *rywplugin.Config) { c.Window = window })

	It("is asked for beside the position", func(ctx SpecContext) {
		a, id := newApp(ctx, windowed), seed(ctx)
		s := session.New()
		db := a.WithContext(session.NewContext(ctx, s))
		readFrom(db, id, true)
		wrote := time.Now()
		bump(db, id)
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		for time.Since(wrote) < window-200*time.Millisecond {
			it, tx := read(db, id)
			Expect(it.Replica).To(BeFalse())
			Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.InWindow))
			other := session.New(s.Token()) // in another process
			it, _ = read(a.WithContext(session.NewContext(ctx, other)), id)
			Expect(it.Replica).To(BeFalse())
		}
		Expect(readFrom(db, id, true).V).To(BeEquivalentTo(2))
		Expect(time.Since(wrote)).To(BeNumerically(">=", window))

		pauseAll(ctx)
		bump(db, id)
		Consistently(func() bool {
			it, _ := read(db, id)
			return it.V == 3 && !it.Replica
		}).WithTimeout(window + 500*time.Millisecond).Should(BeTrue())
		_, tx := read(db, id)
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.Behind), "the window has passed, the position is not there")
	})

	It("decides alone where no position can be relied on", func(ctx SpecContext) {
		if road == "rywpgx" {
			Skip("the driver proves its connections, whoever opened the pool")
		}
		a, id := beside{replicas: 2, window: window}.open(), seed(ctx)
		readFrom(a.Scopes(scopes.StaleOK()), id, true)
		s := session.New()
		db := a.WithContext(session.NewContext(ctx, s))
		wrote := time.Now()
		bump(db, id)
		for time.Since(wrote) < window-200*time.Millisecond {
			it, tx := read(db, id)
			Expect(it.Replica).To(BeFalse(), rywplugin.Explain(tx).String())
		}
		Expect(readFrom(db, id, true).V).To(BeEquivalentTo(2))
		_, tx := read(a.Scopes(scopes.ReadYourWrites(s.Token().String())), id)
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.AfterWindow))
		// It is no proof, and that is how it shows.
		pauseAll(ctx)
		bump(db, id)
		it := readFrom(db, id, true)
		Expect(it.V).To(BeEquivalentTo(2))
	})
})
