package sqlread

import "strings"

// maxName is the length in bytes to which the server cuts names.
const maxName = 63

type tokenKind uint8

const (
	endOfText tokenKind = iota
	fault               // scanner.fault says what is wrong
	word                // a keyword or a name without quotes
	quoted              // a name in double quotes
	literal             // a string of any kind
	number
	parameter   // $1
	placeholder // ? or @name, in fragments only
	operator
	openParen
	closeParen
	openBracket
	closeBracket
	comma
	dot
	colon
	typecast // ::
	semicolon
)

type token struct {
	kind     tokenKind
	word     wordInfo // set by the parser, of a word only
	pos, end int
}

func (t token) isName() bool { return t.kind == word || t.kind == quoted }

// scanner splits text into tokens as PostgreSQL's lexer does (scan.l), for
// valid UTF-8. It stops at the first thing that is not certain.
type scanner struct {
	text     string
	pos      int
	fragment bool // placeholders are tokens, and a comment may not run to the end
	fault    Reason
}

// next returns the next token; after the end it returns endOfText for ever.
func (s *scanner) next() token {
	if !s.skipBlank() {
		return s.failed(s.pos)
	}
	start := s.pos
	if start == len(s.text) {
		return token{kind: endOfText, pos: start, end: start}
	}
	kind, ok := s.scan(s.text[start])
	if !ok {
		return s.failed(start)
	}
	return token{kind: kind, pos: start, end: s.pos}
}

func (s *scanner) failed(start int) token {
	return token{kind: fault, pos: start, end: s.pos}
}

// scan reads the token that begins with c at s.pos.
func (s *scanner) scan(c byte) (tokenKind, bool) {
	switch class[c] {
	case letter:
		return s.scanWord(c)
	case digit:
		return number, s.scanNumber()
	case symbol:
		return s.scanOperator()
	}
	switch c {
	case '\'':
		return literal, s.scanString(s.pos+1, false)
	case '"':
		return quoted, s.scanQuoted(s.pos + 1)
	case '$':
		return s.scanDollar()
	case '.':
		return s.scanDot()
	case ':':
		return s.scanColon()
	}
	return s.scanSelf(c)
}

// scanSelf reads a character that is a token by itself.
func (s *scanner) scanSelf(c byte) (tokenKind, bool) {
	s.pos++
	switch c {
	case '(':
		return openParen, true
	case ')':
		return closeParen, true
	case '[':
		return openBracket, true
	case ']':
		return closeBracket, true
	case ',':
		return comma, true
	case ';':
		return semicolon, true
	}
	return fault, s.fail(ReasonCharacter)
}

func (s *scanner) fail(r Reason) bool {
	s.fault = r
	return false
}

func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// skipBlank passes white space and comments.
func (s *scanner) skipBlank() bool {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case class[c] == blank:
			s.pos++
		case c == '-' && s.at(s.pos+1) == '-':
			if !s.skipLine() {
				return false
			}
		case c == '/' && s.at(s.pos+1) == '*':
			if !s.skipBlock() {
				return false
			}
		default:
			return true
		}
	}
	return true
}

// skipLine passes a -- comment, which ends at either kind of line end.
func (s *scanner) skipLine() bool {
	n := strings.IndexAny(s.text[s.pos:], "\n\r")
	if n >= 0 {
		s.pos += n + 1
		return true
	}
	s.pos = len(s.text)
	if s.fragment {
		return s.fail(ReasonUnterminated) // it would swallow what follows
	}
	return true
}

// skipBlock passes a comment in which comments nest.
func (s *scanner) skipBlock() bool {
	depth := 0
	for i := s.pos; i+1 < len(s.text); {
		switch {
		case s.text[i] == '/' && s.text[i+1] == '*':
			depth++
			i += 2
		case s.text[i] == '*' && s.text[i+1] == '/':
			depth--
			i += 2
			if depth == 0 {
				s.pos = i
				return true
			}
		default:
			i++
		}
	}
	return s.fail(ReasonUnterminated)
}
