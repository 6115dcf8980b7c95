package sqlread

import "strings"

// word takes a word without quotes.
func (p *parser) word(t token) bool {
	switch t.word.key() {
	case keyInto:
		return p.refuse(ReasonInto, t)
	case keyFor:
		return p.forClause(t)
	case keyInsert, keyUpdate, keyDelete, keyMerge:
		if !p.modifying(t) {
			return false
		}
	case keyBy:
		p.top().groupBy = p.prev.word.is(keyGroup)
	case keySelect:
		p.top().groupBy = false
	}
	return p.name(t)
}

// forClause takes FOR, which belongs to a row lock unless it stands directly
// in substring(…) or overlay(…), or in a column FOR ORDINALITY.
func (p *parser) forClause(t token) bool {
	ahead := p.peek().word
	switch {
	case ahead.is(keyUpdate, keyLock):
		return p.refuse(ReasonLock, t)
	case ahead.is(keyOrdinality), p.top().kind == substringGroup:
		return true
	}
	return p.refuse(ReasonUnknown, t)
}

// modifying takes a word that starts a data-modifying statement or is a name
// (none of them is reserved): what follows tells.
func (p *parser) modifying(t token) bool {
	ahead := p.peek()
	starts := ahead.word.is(keyInto)
	switch t.word.key() {
	case keyDelete:
		starts = ahead.word.is(keyFrom)
	case keyUpdate:
		starts = ahead.kind == quoted || ahead.kind == word && (!ahead.word.has(reserved) || ahead.word.is(keyOnly))
	}
	open := p.fragment && (ahead.kind == endOfText || ahead.kind == placeholder)
	if starts || open || ahead.kind == fault {
		return p.refuse(ReasonModifying, t)
	}
	return true
}

// name takes a name or keyword, notes where it stands, and checks it against
// the rules.
func (p *parser) name(t token) bool {
	p.place()
	if t.word.has(reserved) {
		return true
	}
	if t.end-t.pos > maxName {
		if _, ok := p.nameText(t); !ok {
			return p.refuse(ReasonLongName, token{})
		}
	}
	if p.isTemporary(t) {
		return p.refuse(ReasonSession, t)
	}
	if p.applied && !p.isHarmless(t) {
		return p.refuse(ReasonFunction, t)
	}
	return p.obeysRules(t)
}

// place notes the context of the name at hand, or that it continues one.
func (p *parser) place() {
	switch {
	case p.prev.kind == dot && p.prev2.isName() && !p.applied:
		p.parts++
		p.qualifier = p.prev2
		return
	case p.prev.kind == dot: // (expression).name
		p.parts = 1
		p.context = anyName
		p.applied = true
		return
	}
	p.parts = 1
	p.applied = false
	switch {
	case p.prev.kind == typecast:
		p.context = typeName
	case p.prev.word.is(keyAs), p.prev.word.is(keyOrdinality) && p.prev2.word.is(keyWith):
		p.context = aliasName
	case p.prev.kind == closeParen && p.closed != onGroup:
		p.context = afterName
	default:
		p.context = anyName
	}
}

// isTemporary reports a schema of temporary tables: pg_temp, pg_temp_3.
func (p *parser) isTemporary(t token) bool {
	const schema = "pg_temp"
	text := p.unquoted(t)
	return hasPrefix(text, schema) && (len(text) == len(schema) || text[len(schema)] == '_')
}

// mayDescribe spares most names being looked up in the catalogue.
func (p *parser) mayDescribe(t token) bool {
	text := p.unquoted(t)
	return hasPrefix(text, "pg_") || hasPrefix(text, "information_schema")
}

// unquoted returns the text of a name as it is written, without quotes.
func (p *parser) unquoted(t token) string {
	text := p.text[t.pos:t.end]
	if t.kind == quoted {
		return text[1 : len(text)-1]
	}
	return text
}

// hasPrefix compares without regard to case.
func hasPrefix(text, prefix string) bool {
	return len(text) >= len(prefix) && lower(text[0]) == prefix[0] && strings.EqualFold(text[:len(prefix)], prefix)
}

// obeysRules checks a name against the tables and functions of the rules. The
// table is looked for in any place, the function in attribute notation (x.f).
func (p *parser) obeysRules(t token) bool {
	r := &p.classifier.rules
	if p.mayDescribe(t) && catalogue.match(p.fullName(t)) {
		return p.refuse(ReasonCatalog, t)
	}
	if len(r.tables) > 0 && r.tables.match(p.fullName(t)) {
		return p.refuse(ReasonTable, t)
	}
	if len(r.writing) > 0 && p.parts > 1 && p.peek().kind != openParen {
		if n := p.fullName(t); r.writing.match(name{last: n.last}) {
			return p.refuse(ReasonFunction, t)
		}
	}
	return true
}

// fullName returns the latest name, whose last part is t. The schema is empty
// if there is none or it is not a name.
func (p *parser) fullName(t token) name {
	last, _ := p.nameText(t)
	if p.parts == 1 {
		return name{last: last}
	}
	schema, _ := p.nameText(p.qualifier)
	return name{schema: schema, last: last}
}

// placeholder takes GORM's ? or @name. A list of values is put in with
// parentheses, which after a name would be a call.
func (p *parser) placeholder() bool {
	if !p.mayOpen() {
		return p.refuse(ReasonPlaceholder, p.prev)
	}
	return true
}

// open takes an opening parenthesis.
func (p *parser) open(t token) bool {
	if kind := p.opens; kind != plainGroup {
		p.opens = plainGroup
		return p.push(kind, t)
	}
	if p.prev.kind == placeholder {
		return p.refuse(ReasonPlaceholder, t)
	}
	if !p.mayOpen() {
		return p.refuse(ReasonFunction, p.prev)
	}
	return p.push(p.groupKind(), t)
}

// groupKind returns what a parenthesis after the latest token holds.
func (p *parser) groupKind() groupKind {
	switch p.prev.word.key() {
	case keyOn:
		return onGroup
	case keySubstring:
		return substringGroup
	case keyOwnGrammar:
		return ownGroup
	case keyColumns:
		return columnsGroup
	case keySets:
		return setsGroup
	}
	return plainGroup
}
