package sqlread

import (
	"fmt"
	"strings"
)

// Rules are what a user knows and a text cannot show. Names are written as in
// SQL: name or schema.name, folded to lower case unless in double quotes. The
// zero value declares nothing.
type Rules struct {
	// SafeFunctions are functions that neither write nor change the session.
	// A name without a schema is a call without one; a name with a schema is a
	// call written with that schema.
	SafeFunctions []string
	// WritingFunctions are functions that are never a pure read, whatever
	// SafeFunctions and the built-in list say. A name without a schema matches
	// in every schema; one with a schema also matches a call without any. Upper
	// and lower case do not matter.
	WritingFunctions []string
	// PrimaryTables are tables and views to be read only on the primary. A text
	// in which such a name stands, as a table or as anything else, is not a
	// pure read. Schemas and case are as for WritingFunctions.
	PrimaryTables []string
}

// rules is the compiled form of Rules.
type rules struct {
	safe    map[name]bool
	writing looseNames
	tables  looseNames
}

func (r Rules) compile() (rules, error) {
	c := rules{safe: map[name]bool{}, writing: looseNames{}, tables: looseNames{}}
	err := each("SafeFunctions", r.SafeFunctions, func(n name) { c.safe[n] = true })
	if err != nil {
		return rules{}, err
	}
	if err := each("WritingFunctions", r.WritingFunctions, c.writing.add); err != nil {
		return rules{}, err
	}
	if err := each("PrimaryTables", r.PrimaryTables, c.tables.add); err != nil {
		return rules{}, err
	}
	return c, nil
}

func each(field string, texts []string, add func(name)) error {
	for _, text := range texts {
		n, ok := parseName(text)
		if !ok {
			return fmt.Errorf("%s: %q is not a name: want name or schema.name, at most %d bytes each", field, text, maxName)
		}
		add(n)
	}
	return nil
}

// name is a name as the server stores it; schema may be empty.
type name struct{ schema, last string }

func parseName(text string) (name, bool) {
	s := scanner{text: text}
	var parts []string
	for {
		t := s.next()
		part, ok := s.nameText(t)
		if !ok || len(parts) == 2 {
			return name{}, false
		}
		parts = append(parts, part)
		switch s.next().kind {
		case endOfText:
			return newName(parts), true
		case dot:
		default:
			return name{}, false
		}
	}
}

func newName(parts []string) name {
	if len(parts) == 1 {
		return name{last: parts[0]}
	}
	return name{schema: parts[0], last: parts[1]}
}

// looseNames finds names so that no spelling escapes: the key is the last part
// in lower case, the value the schemas it was declared with, in lower case; an
// empty one stands for every schema.
type looseNames map[string][]string

func (l looseNames) add(n name) {
	key := strings.ToLower(n.last)
	l[key] = append(l[key], strings.ToLower(n.schema))
}

// match reports whether a name was declared. An empty schema is one that is
// not written or not known, and matches any.
func (l looseNames) match(n name) bool {
	for _, schema := range l[strings.ToLower(n.last)] {
		if schema == "" || n.schema == "" || schema == strings.ToLower(n.schema) {
			return true
		}
	}
	return false
}
