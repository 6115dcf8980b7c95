package sqlread

import (
	"hash/fnv"
	"math/rand"
	"strings"
	"testing"
)

// blanks are put between tokens; each is white space to the server.
var blanks = []string{" ", "\n", "\t ", "\r\n", "/**/", " /* for update; ' \" $$ ( */ ", " -- into x ' (\n", "/* a /* b */ c */", " --\r"}

// seed adds every text of the tables of cases.
func seed(f *testing.F) {
	for _, list := range [][]string{pureStatements, pureOnNewerServers, pureFragments} {
		for _, sql := range list {
			f.Add(sql)
		}
	}
	for _, cases := range []map[Reason][]string{refusedStatements, refusedFragments} {
		for _, list := range cases {
			for _, sql := range list {
				f.Add(sql)
			}
		}
	}
}

func kinds() map[string]textKind {
	return map[string]textKind{"statement": statementText, "fragment": fragmentText}
}

// lex splits a text; it is false if the lexer refuses it.
func lex(sql string, kind textKind) ([]token, bool) {
	s := scanner{text: sql, fragment: kind == fragmentText}
	var tokens []token
	for {
		t := s.next()
		switch t.kind {
		case fault:
			return nil, false
		case endOfText:
			return tokens, true
		}
		tokens = append(tokens, t)
	}
}

// FuzzVerdict checks what holds of every verdict.
func FuzzVerdict(f *testing.F) {
	seed(f)
	c := newClassifier(f, Rules{})
	f.Fuzz(func(t *testing.T, sql string) {
		for name, kind := range kinds() {
			v := c.classify(sql, kind)
			if v.Pure != (v.Reason == ReasonNone) {
				t.Errorf("%s: have %+v: pure and reason contradict each other", name, v)
			}
			if v.Pure && v.Word != "" || len(v.Word) > maxName || !strings.Contains(sql, v.Word) {
				t.Errorf("%s: have %+v: not a word of the text", name, v)
			}
			if again := c.classify(sql, kind); again != v {
				t.Errorf("%s: have %+v and then %+v", name, v, again)
			}
		}
	})
}

// FuzzTokens checks that the lexer neither loses nor invents a byte: what lies
// between tokens is white space and comments.
func FuzzTokens(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, sql string) {
		for name, kind := range kinds() {
			tokens, _ := lex(sql, kind)
			end := 0
			for _, tok := range tokens {
				if tok.pos < end || tok.end <= tok.pos {
					t.Fatalf("%s: a token at %d to %d after one that ends at %d", name, tok.pos, tok.end, end)
				}
				gap := scanner{text: sql[end:tok.pos]}
				if !gap.skipBlank() || gap.pos != len(gap.text) {
					t.Fatalf("%s: %q between two tokens", name, gap.text)
				}
				end = tok.end
			}
		}
	})
}

// FuzzSpacing checks that neither comments, nor white space, nor the case of
// words and keywords change a verdict.
func FuzzSpacing(f *testing.F) {
	seed(f)
	c := newClassifier(f, Rules{})
	f.Fuzz(func(t *testing.T, sql string) {
		for name, kind := range kinds() {
			tokens, ok := lex(sql, kind)
			want := c.classify(sql, kind)
			if !ok || want.Reason == ReasonEncoding {
				continue
			}
			respelt := respell(sql, tokens)
			if have := c.classify(respelt, kind); have.Reason != want.Reason {
				t.Errorf("%s %q: %v\nrespelt %q: %v", name, sql, want, respelt, have)
			}
		}
	})
}

// respell writes the tokens again, with other blanks and other capitals.
func respell(sql string, tokens []token) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(sql))
	random := rand.New(rand.NewSource(int64(h.Sum64())))
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(blanks[random.Intn(len(blanks))])
		text := sql[t.pos:t.end]
		if t.kind == word {
			text = recase(text, random)
		}
		b.WriteString(text)
	}
	b.WriteString(" \n")
	return b.String()
}

func recase(text string, random *rand.Rand) string {
	changed := []byte(text)
	for i, c := range changed {
		if c |= 0x20; c >= 'a' && c <= 'z' && random.Intn(2) == 0 {
			changed[i] ^= 0x20
		}
	}
	return string(changed)
}

// FuzzLocked checks that a lock clause, a second statement, INTO or a call put
// at the end make any text impure.
func FuzzLocked(f *testing.F) {
	seed(f)
	c := newClassifier(f, Rules{})
	f.Fuzz(func(t *testing.T, sql string) {
		for name, kind := range kinds() {
			for _, more := range []string{"for update", "for no key update of a nowait", "for share", "into x", "; delete from t", ", nextval('s')", "+ my_function(1)"} {
				text := strings.TrimRight(sql, "; \n") + "\n" + more
				if v := c.classify(text, kind); v.Pure {
					t.Errorf("%s %q: have pure read", name, text)
				}
			}
		}
	})
}

// FuzzParentheses checks that parentheses around a query change nothing.
func FuzzParentheses(f *testing.F) {
	seed(f)
	c := newClassifier(f, Rules{})
	f.Fuzz(func(t *testing.T, sql string) {
		tokens, ok := lex(sql, statementText)
		if !ok || len(tokens) == 0 {
			return
		}
		want := c.classify(sql, statementText)
		if want.Reason == ReasonUnbalanced || want.Reason == ReasonDepth {
			return
		}
		first := strings.ToLower(sql[tokens[0].pos:tokens[0].end])
		if last := tokens[len(tokens)-1]; last.kind == semicolon {
			sql = sql[:last.pos]
		}
		pure := want.Pure && first != "show" && first != "explain"
		if v := c.classify("("+sql+"\n)", statementText); v.Pure != pure && v.Reason != ReasonDepth {
			t.Errorf("%q: %v\nin parentheses: %v", sql, want, v)
		}
	})
}
