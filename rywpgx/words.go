package rywpgx

import "strings"

// textKind is what a statement's text says about transactions.
type textKind uint8

const (
	plainText  textKind = iota
	beginText           // begins a transaction
	commitText          // ends the transaction, by its commit
	rollText            // ends the transaction, by its rollback
	inTxText            // is about the transaction itself and writes nothing
	chainText           // ends the transaction and begins another
	mixedText           // may do any of this: not to be followed by another message
)

// kindOf reads as much of a text as it takes. Whatever it does not understand is
// plain: the transaction status that the server reports decides in the end.
func kindOf(sql string) textKind {
	rest := sql
	first := nextWord(&rest)
	switch {
	case isAny(first, "begin", "start"):
		return single(rest, beginText)
	case isAny(first, "commit", "end"):
		return ending(rest, commitText)
	case isAny(first, "rollback", "abort"):
		return ending(rest, rollText)
	case isAny(first, "savepoint", "release"):
		return single(rest, inTxText)
	case isAny(first, "copy"):
		return mixedText
	}
	return single(rest, plainText)
}

// ending tells the ends of a transaction from ROLLBACK TO, AND CHAIN and the
// second half of two-phase commit, which is a statement like any other.
func ending(rest string, kind textKind) textKind {
	tail := rest
	for {
		word := nextWord(&tail)
		switch {
		case isAny(word, "to"):
			return single(rest, inTxText)
		case isAny(word, "prepared"):
			return single(rest, plainText)
		case isAny(word, "chain"):
			return single(rest, chainText)
		case !isAny(word, "work", "transaction", "and"):
			return single(rest, kind) // nothing more, or NO CHAIN
		}
	}
}

// single returns kind for the text of one statement. Texts of several are mixed
// if one of them could begin a transaction or copy; the test is coarse, and takes
// the body of a function for several statements.
func single(rest string, kind textKind) textKind {
	i := strings.IndexByte(rest, ';')
	if i < 0 || skipSpace(rest[i+1:]) == "" {
		return kind
	}
	if kind != plainText || containsAnyFold(rest, "begin", "start", "chain", "copy") {
		return mixedText
	}
	return plainText
}

// nextWord cuts the first word off a text; empty if the text goes on with
// something else.
func nextWord(text *string) string {
	s := skipSpace(*text)
	n := 0
	for n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	*text = s[n:]
	return s[:n]
}

// skipSpace cuts off white space, comments and empty statements.
func skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n\f\v;")
		switch {
		case strings.HasPrefix(s, "--"):
			i := strings.IndexAny(s, "\r\n")
			if i < 0 {
				return ""
			}
			s = s[i:]
		case strings.HasPrefix(s, "/*"):
			s = skipComment(s)
		default:
			return s
		}
	}
}

// skipComment cuts off a comment, which may contain others.
func skipComment(s string) string {
	depth := 0
	for len(s) > 1 {
		switch s[:2] {
		case "/*":
			depth++
			s = s[2:]
		case "*/":
			depth--
			s = s[2:]
		default:
			s = s[1:]
		}
		if depth == 0 {
			return s
		}
	}
	return ""
}

// isAny reports whether word is one of the others, which are in lower case.
func isAny(word string, others ...string) bool {
	for _, o := range others {
		if strings.EqualFold(word, o) {
			return true
		}
	}
	return false
}

func containsAnyFold(s string, words ...string) bool {
	s = strings.ToLower(s)
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
