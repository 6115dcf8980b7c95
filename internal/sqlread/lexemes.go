package sqlread

import "strings"

// scanWord reads a word, or a string or name that a letter introduces.
func (s *scanner) scanWord(c byte) (tokenKind, bool) {
	switch following := s.at(s.pos + 1); {
	case following == '\'' && (c == 'e' || c == 'E'):
		return literal, s.scanString(s.pos+2, true)
	case following == '\'' && strings.IndexByte("bBxXnN", c) >= 0:
		return literal, s.scanString(s.pos+2, false)
	case following == '&' && (c == 'u' || c == 'U'):
		switch s.at(s.pos + 2) {
		case '\'':
			return literal, s.scanString(s.pos+3, false)
		case '"':
			return fault, s.fail(ReasonUnicodeName)
		}
	}
	s.pos = s.wordEnd(s.pos)
	return word, true
}

func (s *scanner) wordEnd(i int) int {
	for i < len(s.text) && (class[s.text[i]] == letter || class[s.text[i]] == digit || s.text[i] == '$') {
		i++
	}
	return i
}

// scanString reads to the end of a string whose content starts at i. Two
// quotes stand for one. A backslash takes the next character with it if escapes
// are on; in a plain string that depends on standard_conforming_strings, so
// there it may not stand before a quote. For everything else the two readings
// end at the same place.
func (s *scanner) scanString(i int, escapes bool) bool {
	for i < len(s.text) {
		switch s.text[i] {
		case '\\':
			if !escapes && s.at(i+1) == '\'' {
				return s.fail(ReasonBackslash)
			}
			i += 2
		case '\'':
			if s.at(i+1) != '\'' {
				s.pos = i + 1
				return true
			}
			i += 2
		default:
			i++
		}
	}
	return s.fail(ReasonUnterminated)
}

// scanQuoted reads to the end of a quoted name whose content starts at i.
func (s *scanner) scanQuoted(i int) bool {
	start := i
	for {
		n := strings.IndexByte(s.text[i:], '"')
		if n < 0 {
			return s.fail(ReasonUnterminated)
		}
		i += n + 1
		if s.at(i) != '"' {
			break
		}
		i++
	}
	s.pos = i
	if i-1 == start {
		return s.fail(ReasonCharacter) // the server refuses an empty name
	}
	return true
}

// scanDollar reads $1 or a dollar-quoted string. A string's tag is a word
// without dollar signs, and the same tag ends it.
func (s *scanner) scanDollar() (tokenKind, bool) {
	i := s.pos + 1
	if class[s.at(i)] == digit {
		for class[s.at(i)] == digit {
			i++
		}
		s.pos = i
		if class[s.at(i)] == letter {
			return fault, s.fail(ReasonCharacter)
		}
		return parameter, true
	}
	for class[s.at(i)] == letter || class[s.at(i)] == digit {
		i++
	}
	if s.at(i) != '$' {
		s.pos++
		return fault, s.fail(ReasonCharacter)
	}
	tag := s.text[s.pos : i+1]
	n := strings.Index(s.text[i+1:], tag)
	if n < 0 {
		return fault, s.fail(ReasonUnterminated)
	}
	s.pos = i + 1 + n + len(tag)
	return literal, true
}

func (s *scanner) scanDot() (tokenKind, bool) {
	if class[s.at(s.pos+1)] == digit {
		return number, s.scanNumber()
	}
	s.pos++
	return dot, true
}

func (s *scanner) scanColon() (tokenKind, bool) {
	s.pos++
	if s.at(s.pos) == ':' {
		s.pos++
		return typecast, true
	}
	return colon, true
}

// scanNumber reads digits, a fraction and an exponent. What follows directly
// may not be a letter: servers before 15 take "1for" as two tokens, those from
// 16 on know 0x1F and 1_000, the others report an error.
func (s *scanner) scanNumber() bool {
	i := s.digits(s.pos)
	if s.at(i) == '.' {
		i = s.digits(i + 1)
	}
	if s.at(i) == 'e' || s.at(i) == 'E' {
		i = s.exponent(i)
	}
	s.pos = i
	if class[s.at(i)] == letter {
		return s.fail(ReasonCharacter)
	}
	return true
}

func (s *scanner) digits(i int) int {
	for class[s.at(i)] == digit {
		i++
	}
	return i
}

// exponent returns the end of the exponent at i, or i if there is none.
func (s *scanner) exponent(i int) int {
	start := i + 1
	if c := s.at(start); c == '+' || c == '-' {
		start++
	}
	if end := s.digits(start); end > start {
		return end
	}
	return i
}

// scanOperator reads operator characters up to one that starts a comment.
func (s *scanner) scanOperator() (tokenKind, bool) {
	i := s.pos
	for ; class[s.at(i)] == symbol && !s.commentAt(i); i++ {
		if s.fragment && s.placeholderAt(i) {
			return s.scanPlaceholder(i)
		}
		if s.text[i] == '*' && s.at(i+1) == '/' && s.at(i+2) != '*' {
			s.pos = i + 2
			return fault, s.fail(ReasonCharacter) // the end of no comment
		}
	}
	s.pos = i
	return operator, true
}

func (s *scanner) placeholderAt(i int) bool {
	return s.text[i] == '?' || s.text[i] == '@' && class[s.at(i+1)] == letter
}

// scanPlaceholder reads the placeholder at i, or the operator before it.
func (s *scanner) scanPlaceholder(i int) (tokenKind, bool) {
	if i > s.pos {
		s.pos = i
		return operator, true
	}
	s.pos = i + 1
	if s.text[i] == '@' {
		s.pos = s.wordEnd(s.pos)
	}
	return placeholder, true
}

func (s *scanner) commentAt(i int) bool {
	c, following := s.text[i], s.at(i+1)
	return c == '-' && following == '-' || c == '/' && following == '*'
}
