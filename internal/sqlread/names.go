package sqlread

import "strings"

// nameText returns a name as the server stores it: folded to lower case (the
// letters A to Z only) unless it is quoted. It is false for another token and
// for a name of wrong length. It allocates only for capitals and doubled quotes.
func (s *scanner) nameText(t token) (string, bool) {
	text := s.text[t.pos:t.end]
	switch t.kind {
	case word:
		text = foldASCII(text)
	case quoted:
		text = text[1 : len(text)-1]
		if strings.Contains(text, `""`) {
			text = strings.ReplaceAll(text, `""`, `"`)
		}
	default:
		return "", false
	}
	return text, len(text) <= maxName
}

func foldASCII(text string) string {
	i := 0
	for i < len(text) && (text[i] < 'A' || text[i] > 'Z') {
		i++
	}
	if i == len(text) {
		return text
	}
	folded := []byte(text)
	for ; i < len(folded); i++ {
		folded[i] = lower(folded[i])
	}
	return string(folded)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

type charClass uint8

const (
	other charClass = iota
	blank
	letter // also every byte of a character outside ASCII, as in scan.l
	digit
	symbol // a character of operators
)

var class = classes()

func classes() (t [256]charClass) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= 0x80:
			t[c] = letter
		case c >= '0' && c <= '9':
			t[c] = digit
		case strings.IndexByte(" \t\n\r\f\v", byte(c)) >= 0:
			t[c] = blank
		case strings.IndexByte("~!@#^&|`?+-*/%<>=", byte(c)) >= 0:
			t[c] = symbol
		}
	}
	return t
}
