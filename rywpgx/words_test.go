package rywpgx

import (
	"testing"
)

func TestKindOf(t *testing.T) {
	for text, want := range map[string]textKind{
		"":                                   plainText,
		";":                                  plainText,
		"select 1":                           plainText,
		"select 1;":                          plainText,
		"insert into t values ($1)":          plainText,
		"insert into t values (1); select 1": plainText,
		"(select 1)":                         plainText,
		"begin":                              beginText,
		"BEGIN ISOLATION LEVEL SERIALIZABLE": beginText,
		" \t\n-- a comment\n/* /* two */ */ Begin;": beginText,
		"-- nothing":                            plainText,
		"/* open":                               plainText,
		"start transaction read only":           beginText,
		"begin; select 1":                       mixedText,
		"select 1; begin":                       mixedText,
		"select 1; start transaction":           mixedText,
		"insert into t values (1); COMMIT":      plainText,
		"commit":                                commitText,
		"Commit;":                               commitText,
		"commit work":                           commitText,
		"commit transaction and no chain":       commitText,
		"end":                                   commitText,
		"commit and chain":                      chainText,
		"COMMIT WORK AND CHAIN":                 chainText,
		"rollback and chain;":                   chainText,
		"commit; insert into t values (1)":      mixedText,
		"commit prepared 'x'":                   plainText,
		"rollback prepared 'x'":                 plainText,
		"prepare transaction 'x'":               plainText,
		"rollback":                              rollText,
		"abort":                                 rollText,
		"rollback work":                         rollText,
		"ROLLBACK TO SAVEPOINT a":               inTxText,
		"rollback transaction to a":             inTxText,
		"savepoint a":                           inTxText,
		"release savepoint a":                   inTxText,
		"savepoint a; insert into t values (1)": mixedText,
		"copy t from stdin":                     mixedText,
		"select 1; copy t to stdout":            mixedText,
		"beginning":                             plainText,
		"commits":                               plainText,
		"do $$begin; end$$":                     mixedText,
		"commit -- and chain":                   commitText,
		"commit /* */ and /* */ chain":          chainText,
	} {
		if have := kindOf(text); have != want {
			t.Errorf("%q: have %d, want %d", text, have, want)
		}
	}
}

func TestKindOfAllocatesNothing(t *testing.T) {
	for _, text := range []string{"INSERT INTO t VALUES ($1)", "COMMIT", "-- x\nselect 1"} {
		if n := testing.AllocsPerRun(100, func() { kindOf(text) }); n != 0 {
			t.Errorf("%q: %v allocations, want 0", text, n)
		}
	}
}

func FuzzKindOf(f *testing.F) {
	f.Add("/* /* */ commit -- x\n and ; chain")
	f.Fuzz(func(t *testing.T, text string) {
		// Leading space, and nothing behind a statement, make no difference.
		want := kindOf(text)
		if have := kindOf(" \n/* x */" + text); have != want {
			t.Errorf("%q: have %d with a comment before, want %d", text, have, want)
		}
	})
}
