package sqlread

// maxDepth is how deep parentheses and brackets may nest.
const maxDepth = 64

// groupKind says what an open parenthesis holds.
type groupKind uint8

const (
	plainGroup     groupKind = iota
	queryGroup               // a query: also the text of a statement itself
	bodyGroup                // the query of a WITH item
	onGroup                  // ON (…): an expression may follow directly, after DISTINCT
	substringGroup           // substring(… FROM … FOR …)
	ownGroup                 // json_table(…) and others with a grammar of their own
	columnsGroup             // COLUMNS (…) of json_table
	setsGroup                // GROUPING SETS (…)
	bracketGroup             // […]
)

// group is one level of parentheses.
type group struct {
	kind    groupKind
	with    withState
	begun   bool // a token was seen in it
	groupBy bool // within its GROUP BY clause
}

// nameContext is where a name stands.
type nameContext uint8

const (
	anyName   nameContext = iota
	typeName              // after ::, so that a parenthesis holds a type's modifiers
	aliasName             // after AS and the like, so that it holds a list of columns
	afterName             // after a closing parenthesis: an alias, OVER, FILTER …
)

// parser reads one text, token by token, and stops at the first thing that is
// not a pure read. Use it once.
type parser struct {
	scanner
	classifier *Classifier
	verdict    Verdict // set when a method returns false

	prev, prev2, prev3 token // the tokens before the present one, latest first

	// Of the latest name: how many parts it has, the one before the last, and
	// where it stands.
	parts     int
	qualifier token
	context   nameContext

	// The latest name follows an expression and a dot, as in (x).f or a[1].f:
	// the server takes it for a field, and where there is none for the call f(x).
	applied bool

	closed groupKind // the kind of the group that prev closed
	opens  groupKind // what the present parenthesis has to hold, if not plainGroup

	depth  int
	groups [maxDepth]group
}

// run reports whether the whole text is a pure read.
func (p *parser) run() bool {
	if !p.fragment {
		p.top().kind = queryGroup
		switch first := p.peek(); {
		case first.kind == endOfText:
			return p.refuse(ReasonEmpty, token{})
		case first.word.is(keyShow):
			return p.show()
		case first.word.is(keyExplain) && !p.explain():
			return false
		}
	}
	for {
		t := p.read()
		if t.kind == endOfText {
			return p.finish(t)
		}
		if !p.accept(t) {
			return false
		}
		p.prev3, p.prev2, p.prev = p.prev2, p.prev, t
	}
}

// read returns the next token, with what the vocabulary knows of it. After a
// dot every word is a name; INTO and FOR are refused there all the same.
func (p *parser) read() token {
	t := p.classify(p.next())
	if p.prev.kind == dot && !t.word.is(keyInto, keyFor) {
		t.word &= harmless
	}
	return t
}

// peek returns the token after the present one.
func (p *parser) peek() token {
	ahead := p.scanner
	return p.classify(ahead.next())
}

func (p *parser) classify(t token) token {
	if t.kind == word {
		t.word = p.classifier.words.find(p.text[t.pos:t.end])
	}
	return t
}

func (p *parser) top() *group { return &p.groups[p.depth] }

// refuse sets the verdict and returns false. The token is the word to show; a
// text's strings and numbers are not shown.
func (p *parser) refuse(r Reason, t token) bool {
	p.verdict = Verdict{Reason: r}
	if t.isName() {
		p.verdict.Word = p.text[t.pos:min(t.end, t.pos+maxName)]
	}
	return false
}

// accept takes one token.
func (p *parser) accept(t token) bool {
	if t.kind == fault {
		return p.refuse(p.fault, t)
	}
	if g := p.top(); !g.begun {
		g.begun = true
		if !p.begin(g, t) {
			return false
		}
	} else if g.with != noWith && !p.withItem(g, t) {
		return false
	}
	switch t.kind {
	case word:
		return p.word(t)
	case quoted:
		return p.name(t)
	case placeholder:
		return p.placeholder()
	case openParen:
		return p.open(t)
	case openBracket:
		return p.push(bracketGroup, t)
	case closeParen, closeBracket:
		return p.close(t)
	case semicolon:
		return p.separator(t)
	}
	return true
}

// begin takes the first token of a group; where a query has to stand, it has to
// be the start of one.
func (p *parser) begin(g *group, t token) bool {
	if t.word.is(keyWith) {
		g.with = withName
		return true
	}
	if g.kind != queryGroup && g.kind != bodyGroup {
		return true
	}
	return p.query(t)
}

// query takes the first word of a query, or a parenthesis that holds one.
func (p *parser) query(t token) bool {
	switch {
	case t.word.is(keySelect, keyValues, keyTable):
		return true
	case t.kind == openParen:
		p.opens = queryGroup
		return true
	case t.word.is(keyInsert, keyUpdate, keyDelete, keyMerge) && p.depth > 0:
		return p.refuse(ReasonModifying, t)
	}
	return p.refuse(ReasonStatement, t)
}

func (p *parser) startsQuery(t token) bool {
	return t.word.is(keySelect, keyWith, keyValues, keyTable)
}

// finish takes the end of the text.
func (p *parser) finish(end token) bool {
	if p.depth > 0 {
		return p.refuse(ReasonUnbalanced, end)
	}
	if !p.fragment && !p.top().begun {
		return p.refuse(ReasonStatement, end) // EXPLAIN of nothing
	}
	with := p.top().with
	if with == noWith || p.fragment && (with == withItemDone || with == withMarkSet) {
		return true
	}
	return p.refuse(ReasonUnknown, end)
}

// separator takes a semicolon, which may only end a statement.
func (p *parser) separator(t token) bool {
	if p.fragment || p.peek().kind != endOfText {
		return p.refuse(ReasonSeveral, t)
	}
	return true
}

func (p *parser) push(kind groupKind, t token) bool {
	p.depth++
	if p.depth == maxDepth {
		return p.refuse(ReasonDepth, t)
	}
	p.groups[p.depth] = group{kind: kind}
	return true
}

func (p *parser) close(t token) bool {
	kind := p.top().kind
	if p.depth == 0 || (kind == bracketGroup) != (t.kind == closeBracket) {
		return p.refuse(ReasonUnbalanced, t)
	}
	p.closed = kind
	p.depth--
	return true
}

// show takes SHOW and the name of a setting.
func (p *parser) show() bool {
	show := p.read()
	if !p.peek().isName() {
		return p.refuse(ReasonUnknown, show)
	}
	for {
		switch t := p.read(); t.kind {
		case word:
			if t.word.has(reserved) && !t.word.is(keyAll) {
				return p.refuse(ReasonUnknown, t)
			}
		case quoted, dot:
		case endOfText:
			return true
		case semicolon:
			return p.separator(t)
		case fault:
			return p.refuse(p.fault, t)
		default:
			return p.refuse(ReasonUnknown, show)
		}
	}
}

// explain takes EXPLAIN and its options, up to the statement it explains.
func (p *parser) explain() bool {
	p.read()
	if ahead := p.peek(); ahead.kind == openParen && !p.queryInParens() {
		return p.explainOptions()
	}
	for p.peek().word.is(keyAnalyze, keyVerbose) {
		p.read()
	}
	return true
}

func (p *parser) queryInParens() bool {
	ahead := p.scanner
	ahead.next()
	t := p.classify(ahead.next())
	return p.startsQuery(t) || t.kind == openParen
}

// explainOptions takes EXPLAIN's list of options in parentheses.
func (p *parser) explainOptions() bool {
	p.read()
	for {
		switch t := p.read(); t.kind {
		case word, quoted, literal, number, comma:
		case closeParen:
			return true
		case fault:
			return p.refuse(p.fault, t)
		default:
			return p.refuse(ReasonUnknown, t)
		}
	}
}
