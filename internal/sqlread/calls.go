package sqlread

// mayOpen reports whether a parenthesis may follow the latest token: it is no
// name, or no call, or the call of a harmless function.
func (p *parser) mayOpen() bool {
	t := p.prev
	if !t.isName() {
		return true
	}
	switch p.context {
	case typeName, aliasName:
		return true
	case afterName:
		if p.parts == 1 {
			return true
		}
	}
	if t.word.has(uncallable) || p.isSyntax(t) {
		return true
	}
	return p.isHarmless(t)
}

// isSyntax reports whether a word that could name a function is, by what stands
// before it, a part of the grammar.
func (p *parser) isSyntax(t token) bool {
	before := p.prev2.word
	switch t.word.key() {
	case keyBy:
		return before.is(keyGroup, keyOrder, keyPartition)
	case keyColumns:
		return p.isColumns()
	case keyCube, keyRollup:
		return p.isGrouping()
	case keyILike:
		return p.isOperand(p.prev2)
	case keyJoin:
		return before.is(keyJoinKind) || p.isOperand(p.prev2) || p.startsQuery(p.peek())
	case keySampling:
		return before.is(keyTableSample)
	case keySets:
		return before.is(keyGrouping)
	case keyVarying:
		return before.is(keyCharType)
	case keyZone:
		return before.is(keyTime)
	}
	return false
}

// isColumns recognises COLUMNS ( of json_table: after a path or AS name.
func (p *parser) isColumns() bool {
	kind := p.top().kind
	if kind != ownGroup && kind != columnsGroup {
		return false
	}
	return p.prev2.kind == literal || p.prev3.word.is(keyAs)
}

// isGrouping recognises ROLLUP ( and CUBE ( as elements of GROUP BY.
func (p *parser) isGrouping() bool {
	switch g := p.top(); {
	case g.groupBy:
		return p.prev2.kind == comma || p.prev2.word.is(keyBy, keyAll, keyDistinct)
	case g.kind == setsGroup:
		return p.prev2.kind == comma || p.prev2.kind == openParen
	}
	return false
}

// isOperand reports whether a token can end an operand, so that a word after it
// is an operator.
func (p *parser) isOperand(t token) bool {
	switch t.kind {
	case quoted, literal, number, parameter, placeholder, closeBracket:
		return true
	case closeParen:
		return p.closed != onGroup
	case word:
		return p.prev3.kind == dot || p.top().kind != ownGroup && !t.word.has(uncallable) &&
			!t.word.is(keyBeforeOperand, keyBy, keyILike, keyJoin, keyTableSample, keyZone)
	}
	return false
}

// isHarmless reports whether the latest name, which ends in t, is a function
// that is known or declared to be harmless. A quoted name is looked up as it
// is, because "Lower" is not lower.
func (p *parser) isHarmless(t token) bool {
	r := &p.classifier.rules
	if len(r.writing) > 0 && r.writing.match(p.fullName(t)) {
		return false
	}
	if p.parts > 2 {
		return false
	}
	if p.isBuiltIn(t) {
		return true
	}
	if len(r.safe) == 0 {
		return false
	}
	return r.safe[p.fullName(t)]
}

func (p *parser) isBuiltIn(t token) bool {
	if p.parts == 2 {
		if schema, _ := p.nameText(p.qualifier); schema != "pg_catalog" {
			return false
		}
	}
	if t.kind == word {
		return t.word.has(harmless)
	}
	text, _ := p.nameText(t)
	return p.classifier.words[text].has(harmless)
}
