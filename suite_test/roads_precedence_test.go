package suite_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// asked is what a read asks for, in the four places where it can say so.
type asked struct {
	byDefault policy.Default
	session   sessionState
	inContext func(ctx context.Context, tok token.Token) context.Context
	onQuery   func(db *gorm.DB, tok token.Token) *gorm.DB
}

type sessionState int

const (
	noSession sessionState = iota
	newSession
	wroteSession // a session whose write no replica has
)

func ctxStale(ctx context.Context, _ token.Token) context.Context { return scopes.WithStaleOK(ctx) }
func ctxStrong(ctx context.Context, _ token.Token) context.Context {
	return scopes.WithStrong(ctx)
}

func ctxToken(ctx context.Context, tok token.Token) context.Context {
	return scopes.WithReadYourWrites(ctx, tok)
}

func ctxNothing(ctx context.Context, _ token.Token) context.Context {
	return scopes.WithReadYourWrites(ctx, "")
}

func queryScopes(ss ...scopes.Scope) func(*gorm.DB, token.Token) *gorm.DB {
	return func(db *gorm.DB, _ token.Token) *gorm.DB {
		for _, s := range ss {
			db = db.Scopes(s)
		}
		return db
	}
}

func queryToken(db *gorm.DB, tok token.Token) *gorm.DB { return db.Scopes(scopes.ReadYourWrites(tok)) }

func queryClause(op dbresolver.Operation) func(*gorm.DB, token.Token) *gorm.DB {
	return func(db *gorm.DB, _ token.Token) *gorm.DB { return db.Clauses(op) }
}

var (
	stronger, weaker = scopes.Strong(), scopes.StaleOK()
	strongClause     = stronger.Clause()
)

var _ = Describe("What a read asks for, in order of precedence", func() {
	DescribeTable("the query's hint, then the context's, then the session, then the default",
		func(ctx SpecContext, want string, q asked) {
			a := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.Default = q.byDefault }))
			id := seed(ctx)
			pauseAll(ctx)
			tok := rywplugin.Token(bump(a.DB, id)) // somebody else's write, version 2
			c := context.Context(ctx)
			if q.session != noSession {
				c, _ = withSession(c)
			}
			if q.session == wroteSession {
				bump(a.WithContext(c), id)
			}
			if q.inContext != nil {
				c = q.inContext(c, tok)
			}
			db := a.WithContext(c)
			if q.onQuery != nil {
				db = q.onQuery(db, tok)
			}
			it, tx := read(db, id)
			Expect(it.Replica).To(Equal(want == replica), rywplugin.Explain(tx).String())
		},
		Entry("nothing: the default, Strong", primary, asked{}),
		Entry("nothing: the default, StaleOK", replica, asked{byDefault: rywplugin.StaleOK}),
		Entry("a session is a hint: nothing to cover, over Strong", replica, asked{session: newSession}),
		Entry("a session is a hint: its write, over StaleOK", primary, asked{byDefault: rywplugin.StaleOK, session: wroteSession}),
		Entry("the context's StaleOK over the default", replica, asked{inContext: ctxStale}),
		Entry("the context's Strong over the default", primary, asked{byDefault: rywplugin.StaleOK, inContext: ctxStrong}),
		Entry("the context's Strong over the session", primary, asked{session: newSession, inContext: ctxStrong}),
		Entry("the context's StaleOK with a session that wrote nothing", replica, asked{session: newSession, inContext: ctxStale}),
		Entry("the context's StaleOK never drops the session's write", primary, asked{session: wroteSession, inContext: ctxStale}),
		Entry("the context's token over the default", primary, asked{byDefault: rywplugin.StaleOK, inContext: ctxToken}),
		Entry("the context's token adds to the session", primary, asked{session: newSession, inContext: ctxToken}),
		Entry("the context's empty token is a hint", replica, asked{inContext: ctxNothing}),
		Entry("the context's empty token adds nothing to the session's write", primary, asked{session: wroteSession, inContext: ctxNothing}),
		Entry("the query's StaleOK over the context's Strong", replica, asked{inContext: ctxStrong, onQuery: queryScopes(weaker)}),
		Entry("the query's StaleOK over the context's token", replica, asked{inContext: ctxToken, onQuery: queryScopes(weaker)}),
		Entry("the query's StaleOK drops the session's write", replica, asked{session: wroteSession, onQuery: queryScopes(weaker)}),
		Entry("the query's Strong over the context's StaleOK", primary, asked{inContext: ctxStale, onQuery: queryScopes(stronger)}),
		Entry("the query's Strong over the session", primary, asked{session: newSession, onQuery: queryScopes(stronger)}),
		Entry("the query's token over the context's StaleOK", primary, asked{inContext: ctxStale, onQuery: queryToken}),
		Entry("the query's token over the default StaleOK", primary, asked{byDefault: rywplugin.StaleOK, onQuery: queryToken}),
		Entry("the query's token adds to a session without writes", primary, asked{session: newSession, onQuery: queryToken}),
		Entry("the query's empty token is a hint", replica, asked{onQuery: queryScopes(scopes.ReadYourWrites(""))}),
		Entry("the query's empty token adds nothing to the session's write", primary,
			asked{session: wroteSession, onQuery: queryScopes(scopes.ReadYourWrites(""))}),
		Entry("of two hints on the query the stronger", primary, asked{onQuery: queryScopes(weaker, stronger)}),
		Entry("of two hints on the query the stronger, the other way round", primary, asked{onQuery: queryScopes(stronger, weaker)}),
		Entry("of StaleOK and an empty token on the query the token, and so the session", primary,
			asked{session: wroteSession, onQuery: queryScopes(weaker, scopes.ReadYourWrites(""))}),
		Entry("dbresolver.Write over everything", primary,
			asked{byDefault: rywplugin.StaleOK, session: newSession, inContext: ctxStale, onQuery: func(db *gorm.DB, _ token.Token) *gorm.DB {
				return db.Scopes(weaker).Clauses(dbresolver.Write)
			}}),
		Entry("dbresolver.Read over the default", replica, asked{onQuery: queryClause(dbresolver.Read)}),
		Entry("dbresolver.Read does not drop the session's write", primary, asked{session: wroteSession, onQuery: queryClause(dbresolver.Read)}),
		Entry("dbresolver.Read does not drop the context's Strong", primary, asked{inContext: ctxStrong, onQuery: queryClause(dbresolver.Read)}),
	)

	It("counts a read under StaleOK as an observation all the same", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		Expect(cluster.Replica(1).PauseReplay(ctx)).To(Succeed())
		bump(a.DB, id)
		lsn, err := cluster.Primary().Position(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Replica(0).WaitCaughtUp(ctx, lsn)).To(Succeed())
		for range 30 {
			c, _ := withSession(ctx)
			first, _ := read(a.WithContext(c).Scopes(scopes.StaleOK()), id)
			it, tx := read(a.WithContext(c), id)
			Expect(it.V).To(BeNumerically(">=", first.V), rywplugin.Explain(tx).String())
		}
	})

	It("takes the context of a finished write for a token of it", func(ctx SpecContext) {
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.Default = rywplugin.StaleOK })), seed(ctx)
		pauseAll(ctx)
		tx := bump(a.DB, id)
		it, _ := read(a.WithContext(tx.Statement.Context), id)
		Expect(it.V).To(BeEquivalentTo(2))
		it, _ = read(a.DB, id)
		Expect(it.V).To(BeEquivalentTo(1), "nobody else is held to it")
	})

	It("takes no session for one that was taken away", func(ctx SpecContext) {
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.Default = rywplugin.StaleOK })), seed(ctx)
		pauseAll(ctx)
		c, _ := withSession(ctx)
		bump(a.WithContext(c), id)
		it, _ := read(a.WithContext(session.NewContext(c, nil)), id)
		Expect(it.V).To(BeEquivalentTo(1))
		it, _ = read(a.WithContext(c), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})
})
