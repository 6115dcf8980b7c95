package sqlread

// withState is how far the WITH list at the start of a group was read:
//
//	WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (query)
//	     [SEARCH … SET name] [CYCLE … SET name …] [, name …] query
type withState uint8

const (
	noWith       withState = iota
	withName               // the name of an item is due
	withColumns            // its columns or AS
	withAs                 // AS
	withBody               // MATERIALIZED or the parenthesis of its query
	withItemDone           // a comma, SEARCH, CYCLE or the main query
	withMark               // within SEARCH or CYCLE, before SET
	withMarkSet            // after SET
)

// withItem takes one token of a WITH list. Whatever does not fit is refused:
// this is where a data-modifying statement could hide.
func (p *parser) withItem(g *group, t token) bool {
	switch g.with {
	case withName:
		return p.withItemName(g, t)
	case withColumns, withAs:
		return p.withItemAs(g, t)
	case withBody:
		return p.withItemBody(g, t)
	case withItemDone:
		return p.withNext(g, t)
	}
	return p.withMarks(g, t)
}

func (p *parser) withItemName(g *group, t token) bool {
	if t.word.is(keyRecursive) && p.prev.word.is(keyWith) {
		return true
	}
	if t.kind == quoted || t.kind == word && !t.word.has(reserved) {
		g.with = withColumns
		return true
	}
	return p.refuse(ReasonUnknown, t)
}

func (p *parser) withItemAs(g *group, t token) bool {
	switch {
	case t.word.is(keyAs):
		g.with = withBody
		return true
	case t.kind == openParen && g.with == withColumns:
		g.with = withAs
		p.context = aliasName
		return true
	}
	return p.refuse(ReasonUnknown, t)
}

func (p *parser) withItemBody(g *group, t token) bool {
	switch {
	case t.word.is(keyNot, keyMaterialized):
		return true
	case t.kind == openParen:
		g.with = withItemDone
		p.opens = bodyGroup
		return true
	}
	return p.refuse(ReasonUnknown, t)
}

// withNext takes what follows an item.
func (p *parser) withNext(g *group, t token) bool {
	switch {
	case t.kind == comma:
		g.with = withName
		return true
	case t.word.is(keySearch, keyCycle):
		g.with = withMark
		return true
	}
	g.with = noWith
	if t.word.is(keyInsert, keyUpdate, keyDelete, keyMerge) {
		return p.refuse(ReasonModifying, t)
	}
	return p.query(t)
}

// withMarks takes a token of SEARCH or CYCLE. Their commas separate columns
// before SET, and items after it.
func (p *parser) withMarks(g *group, t token) bool {
	switch {
	case t.word.is(keySet):
		g.with = withMarkSet
	case t.word.is(keyCycle):
		g.with = withMark
	case g.with == withMarkSet && t.kind == comma:
		g.with = withName
	case g.with == withMarkSet && t.word.is(keySelect, keyValues, keyTable):
		g.with = noWith
	case t.kind != word && t.kind != quoted && t.kind != literal && t.kind != number && t.kind != comma:
		return p.refuse(ReasonUnknown, t)
	}
	return true
}
