package suite_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"
)

// What a cell of the document may say.
const (
	none     = "—"        // does not apply
	primary  = "primary"  // the primary answers, always
	replica  = "replica"  // a replica answers, once one has what is to be seen
	refused  = "error"    // the call returns token.ErrInvalid
	notSent  = "not sent" // nothing is decided, counted or waited for
	captured = "captured" // the token holds the write's position
	atClose  = "captured at close"
	byDriver = "captured by rywpgx"
	marked   = "mark"    // the token holds a mark
	nothing  = "nothing" // the token holds no write
	stale    = "stale"   // of dbresolver alone: a replica answers, too old
	fails    = "fails"   // of dbresolver alone: a write on a replica
)

// use returns a run of the road with a context and hint of its own.
func (a *app) use(ctx context.Context, base *gorm.DB, id int64, hints ...scopes.Scope) *run {
	r := &run{ctx: ctx, id: id, app: a.DB}
	db := base.WithContext(ctx)
	for _, h := range hints {
		db = db.Scopes(h)
		r.scopes, r.hints = append(r.scopes, h), append(r.hints, clause.Expression(h.Clause()))
	}
	r.db = db.Session(&gorm.Session{})
	return r
}

func withSession(ctx context.Context) (context.Context, *session.Session) {
	s := session.New()
	return session.NewContext(ctx, s), s
}

// checkRead makes the call in each of the document's situations: while nobody but
// the primary has the newest version, and again when the replicas have it.
func (w way) checkRead(ctx context.Context, a *app, r row) {
	GinkgoHelper()
	id := plant(ctx, 1)[0]
	pauseAll(ctx)
	primarySQL(ctx, "select grow($1)", id)
	By("default")
	w.want(a, r.byDefault, a.use(ctx, a.DB, id), 2, 1)
	By("under StaleOK")
	w.want(a, r.stale, a.use(ctx, a.DB, id, scopes.StaleOK()), 2, 1)
	By("in a transaction")
	w.checkReadWithin(ctx, a, r.in, id)
	By("under a session, while no replica has its write")
	c, _ := withSession(ctx)
	grow(a.WithContext(c), id)
	w.want(a, atFirst(r.session), a.use(c, a.DB, id), 3, 1)
	By("under a session, once a replica has its write")
	heal(ctx, cluster)
	if r.session != replica {
		readFrom(a.WithContext(c), id, true) // others of the session's are served by one
		w.want(a, r.session, a.use(c, a.DB, id), 3, 3)
		return
	}
	eventually("a replica answers", func() bool {
		answers, err := w.read(a.use(c, a.DB, id))
		Expect(err).NotTo(HaveOccurred())
		return all(answers, seenV{V: 3, Replica: true})
	})
}

// atFirst is where a session's read goes before any replica has its write.
func atFirst(cell string) string {
	if cell == replica {
		return primary
	}
	return cell
}

func (w way) checkReadWithin(ctx context.Context, a *app, cell string, id int64) {
	GinkgoHelper()
	if cell == none {
		return
	}
	c, _ := withSession(ctx)
	tx := a.WithContext(c).Begin()
	Expect(tx.Error).NotTo(HaveOccurred())
	defer tx.Rollback()
	grow(tx, id) // nobody else sees it
	w.want(a, cell, a.use(c, tx, id), 3, 1)
	w.want(a, cell, a.use(c, tx, id, scopes.StaleOK()), 3, 1)
}

// want makes the call and compares: the version that the primary has, and the one
// that the replicas have.
func (w way) want(a *app, cell string, r *run, onPrimary, onReplica int64) {
	GinkgoHelper()
	if cell == none {
		return
	}
	before := a.ryw.Status()
	answers, err := w.read(r)
	switch cell {
	case primary:
		Expect(err).NotTo(HaveOccurred())
		Expect(answers).To(HaveEach(seenV{V: onPrimary}))
	case replica:
		Expect(err).NotTo(HaveOccurred())
		Expect(answers).To(HaveEach(seenV{V: onReplica, Replica: true}))
	case refused:
		Expect(err).To(MatchError(token.ErrInvalid))
	case notSent:
		Expect(err).NotTo(HaveOccurred())
		Expect(answers).To(BeEmpty())
		Expect(a.ryw.Status().Reads).To(Equal(before.Reads))
	default:
		Fail("docs/roads.md: " + cell + " is not an answer for a read")
	}
}

func all(answers []seenV, want seenV) bool {
	for _, a := range answers {
		if a != want {
			return false
		}
	}
	return len(answers) > 0
}

// checkWrite makes the call in each of the document's situations while replay is
// paused: only a token that covers the write brings the reads to the primary, and
// only one that has the position brings them back to a replica.
func (w way) checkWrite(ctx context.Context, a *app, r row) {
	GinkgoHelper()
	ids := plant(ctx, 4)
	pauseAll(ctx)
	var later []func()
	then := func(check func()) { later = append(later, check) }

	By("default")
	c, s := withSession(ctx)
	if r.byDefault == atClose { // behind the call, when a sink must not be read
		w.wantWrite(a, r.byDefault, a.use(c, a.DB, ids[0]), s.Token, then)
	} else {
		var tok token.Token
		w.wantWrite(a, r.byDefault, a.use(rywplugin.Into(ctx, &tok), a.DB, ids[0]), func() token.Token { return tok }, then)
	}
	By("under a session")
	c, s = withSession(ctx)
	w.wantWrite(a, r.session, a.use(c, a.DB, ids[1]), s.Token, then)
	By("under StaleOK")
	c, s = withSession(ctx)
	w.wantWrite(a, r.stale, a.use(c, a.DB, ids[2], scopes.StaleOK()), s.Token, then)
	By("in a transaction")
	if r.in != none {
		c, s := withSession(ctx)
		within := w
		within.write = func(r *run) error { return w.within(a, c, r) }
		within.wantWrite(a, r.in, a.use(c, a.DB, ids[3]), s.Token, then)
	}
	By("once the replicas have it")
	heal(ctx, cluster)
	for _, check := range later {
		check()
	}
}

// within makes the call in a transaction, during which the session's other reads
// stay on the primary.
func (w way) within(a *app, c context.Context, r *run) error {
	tx := a.WithContext(c).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	defer tx.Rollback()
	if err := w.write(a.use(c, tx, r.id)); err != nil {
		return err
	}
	done, byReplica := w.isDone(a.WithContext(c), r.id)
	Expect(done).To(BeFalse(), "seen before its commit")
	Expect(byReplica).To(BeFalse())
	return tx.Commit().Error
}

func (w way) wantWrite(a *app, cell string, r *run, tok func() token.Token, then func(func())) {
	GinkgoHelper()
	if cell == none {
		return
	}
	before := a.ryw.Status()
	err := w.write(r)
	if cell == refused {
		Expect(err).To(MatchError(token.ErrInvalid))
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
	if cell == byDriver {
		if cell = nothing; road == "rywpgx" {
			cell = captured
		}
	}
	switch cell {
	case captured:
		Expect(hasPosition(tok())).To(BeTrue(), "%v", tok())
	case atClose:
		eventually("the position is captured", func() bool { return hasPosition(tok()) })
	case marked:
		Expect(tok().Len()).To(Equal(1))
		Expect(tok().At(0).Wrote).To(BeTrue())
	case nothing, notSent, refused:
		wantNothing(a, tok(), before.Captures+before.Marks)
		then(func() { // nor does anything hold the session on the primary
			if _, ok := session.FromContext(r.ctx); ok {
				readFrom(a.WithContext(r.ctx), r.id, true)
			}
		})
		return
	default:
		Fail("docs/roads.md: " + cell + " is not an answer for a write")
	}
	text := tok().String()
	done, byReplica := w.isDone(a.Scopes(scopes.ReadYourWrites(text)), r.id)
	Expect(done).To(BeTrue(), "not seen under the token")
	Expect(byReplica).To(BeFalse())
	then(func() { w.seenOnReplica(a, text, r.id) })
}

func (w way) seenOnReplica(a *app, text string, id int64) {
	GinkgoHelper()
	eventually("a replica shows the write", func() bool {
		done, byReplica := w.isDone(a.Scopes(scopes.ReadYourWrites(text)), id)
		Expect(done).To(BeTrue(), "not seen under the token")
		return byReplica
	})
}

// wantNothing is for a call after which there is nothing to be seen.
func wantNothing(a *app, tok token.Token, before int64) {
	GinkgoHelper()
	for i := range tok.Len() {
		Expect(tok.At(i).Write.LSN).To(BeZero())
		Expect(tok.At(i).Wrote).To(BeFalse())
	}
	st := a.ryw.Status()
	Expect(st.Captures + st.Marks).To(Equal(before))
}

// hasPosition reports whether a token covers a write and holds no mark of one.
func hasPosition(t token.Token) bool {
	return t.Len() == 1 && t.At(0).Write.LSN != 0 && !t.At(0).Wrote
}

// isDone asks whether the write has been made, and whether a replica says so.
func (w way) isDone(db *gorm.DB, id int64) (done, byReplica bool) {
	GinkgoHelper()
	condition := w.done
	if condition == "" {
		condition = "exists (select from items where id = ? and v = 2)"
	}
	row := db.Raw("select "+condition+" as done, pg_is_in_recovery() as replica", id).Row()
	Expect(row.Scan(&done, &byReplica)).To(Succeed())
	return done, byReplica
}

// checkPlain makes the call on dbresolver alone.
func (w way) checkPlain(ctx context.Context, cell string) {
	GinkgoHelper()
	id := plant(ctx, 1)[0]
	open := newPlain
	if w.plain != nil {
		open = w.plain
	}
	db := open()
	pauseAll(ctx)
	r := &run{ctx: ctx, db: db, app: db, id: id}
	if w.write != nil {
		w.checkPlainWrite(r, cell)
		return
	}
	grow(db.Clauses(dbresolver.Write), id)
	answers, err := w.read(r)
	switch cell {
	case primary:
		Expect(err).NotTo(HaveOccurred())
		Expect(answers).To(HaveEach(seenV{V: 2}))
	case stale:
		Expect(err).NotTo(HaveOccurred())
		Expect(answers).To(HaveEach(seenV{V: 1, Replica: true}))
	case fails:
		Expect(sqlState(err)).To(Equal("25006"))
	default:
		Fail("docs/roads.md: " + cell + " is not an answer of dbresolver alone")
	}
}

func (w way) checkPlainWrite(r *run, cell string) {
	GinkgoHelper()
	err := w.write(r)
	switch cell {
	case primary:
		Expect(err).NotTo(HaveOccurred())
		done, byReplica := w.isDone(r.db.Clauses(dbresolver.Write), r.id)
		Expect(done).To(BeTrue())
		Expect(byReplica).To(BeFalse())
	case fails:
		Expect(sqlState(err)).To(Equal("25006"))
	default:
		Fail("docs/roads.md: " + cell + " is not an answer of dbresolver alone")
	}
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
