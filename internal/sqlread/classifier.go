package sqlread

import (
	"strings"
	"unicode/utf8"
)

// Classifier answers whether texts are pure reads, under one set of rules. Its
// rules never change and its methods are safe for concurrent use. Make it with
// New; the zero value is not usable.
type Classifier struct {
	rules rules
	words vocabulary
	cache *cache
}

// New returns a Classifier for the rules. It reports a name that is not one;
// the error starts with the field's name.
func New(r Rules) (*Classifier, error) {
	compiled, err := r.compile()
	if err != nil {
		return nil, err
	}
	return &Classifier{rules: compiled, words: sharedVocabulary(), cache: newCache()}, nil
}

// Statement classifies a whole statement, as it is sent to the server: a
// question mark in it is an operator, not a placeholder.
func (c *Classifier) Statement(sql string) Verdict {
	return c.cached(sql, statementText)
}

// Fragment classifies a raw piece of a SELECT that GORM builds: the text of a
// Select, Where, Joins, Group, Having, Order, Table or clause.Expr, before its
// placeholders (?, @name) are filled in. It has to be balanced by itself. What
// is put in for a placeholder as SQL (another expression, a subquery) has to be
// classified by itself; two fragments that make a call only when they stand
// side by side are not recognised.
func (c *Classifier) Fragment(sql string) Verdict {
	return c.cached(sql, fragmentText)
}

func (c *Classifier) cached(sql string, kind textKind) Verdict {
	if len(sql) > CacheTextBytes {
		return c.classify(sql, kind)
	}
	if v, ok := c.cache.get(sql, kind); ok {
		return v
	}
	v := c.classify(sql, kind)
	c.cache.put(sql, kind, v)
	return v
}

func (c *Classifier) classify(sql string, kind textKind) Verdict {
	if strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return Verdict{Reason: ReasonEncoding}
	}
	p := parser{classifier: c}
	p.text = sql
	p.fragment = kind == fragmentText
	if !p.run() {
		return p.verdict
	}
	return Verdict{Pure: true}
}
