package sqlread

// Verdict is the answer for one text. The zero value is "not pure" for no
// stated reason and is never returned.
type Verdict struct {
	// Pure reports that the text is provably a pure read.
	Pure bool
	// Reason says why the text is not pure; ReasonNone if it is.
	Reason Reason
	// Word is the keyword or name that decided, as it is written in the text,
	// or empty. It is never the content of a string, so it may be logged.
	Word string
}

// String returns "pure read", or the reason and the word.
func (v Verdict) String() string {
	switch {
	case v.Pure:
		return "pure read"
	case v.Word == "":
		return v.Reason.String()
	}
	return v.Reason.String() + ": " + v.Word
}

// Reason says why a text is not a pure read.
type Reason uint8

// The reasons, in the order in which they are described in the documentation.
const (
	// ReasonNone belongs to a pure read.
	ReasonNone Reason = iota
	// ReasonStatement is a statement that is not SELECT, WITH, VALUES, TABLE,
	// SHOW or an EXPLAIN of one of them.
	ReasonStatement
	// ReasonSeveral is text with more than one statement, or a semicolon
	// within a fragment.
	ReasonSeveral
	// ReasonModifying is INSERT, UPDATE, DELETE or MERGE inside a query.
	ReasonModifying
	// ReasonInto is SELECT INTO, which creates a table.
	ReasonInto
	// ReasonLock is FOR UPDATE, FOR SHARE and their kin.
	ReasonLock
	// ReasonFunction is a function not known to be harmless.
	ReasonFunction
	// ReasonTable is a table declared in Rules.PrimaryTables.
	ReasonTable
	// ReasonCatalog is a catalogue that describes tables: whoever asks it is
	// about to change them, and a replica's is behind as its tables are.
	ReasonCatalog
	// ReasonSession is a name that exists only in one session (pg_temp).
	ReasonSession
	// ReasonPlaceholder is a placeholder where a function's name or its
	// arguments could be put in later.
	ReasonPlaceholder
	// ReasonBackslash is a backslash before a quote in a plain string: where
	// that string ends depends on standard_conforming_strings.
	ReasonBackslash
	// ReasonUnicodeName is a name written with Unicode escapes.
	ReasonUnicodeName
	// ReasonLongName is a name over 63 bytes, which the server cuts.
	ReasonLongName
	// ReasonUnterminated is a string, name or comment without an end.
	ReasonUnterminated
	// ReasonUnbalanced is a parenthesis or bracket without its partner.
	ReasonUnbalanced
	// ReasonDepth is text nested deeper than this package follows.
	ReasonDepth
	// ReasonEncoding is a NUL byte or invalid UTF-8.
	ReasonEncoding
	// ReasonCharacter is a character or number that the server's lexer refuses
	// or that its versions read differently.
	ReasonCharacter
	// ReasonEmpty is a statement without any token.
	ReasonEmpty
	// ReasonUnknown is anything else that was not understood.
	ReasonUnknown
)

var reasonTexts = [...]string{
	ReasonNone:         "pure read",
	ReasonStatement:    "not a read statement",
	ReasonSeveral:      "several statements",
	ReasonModifying:    "data-modifying statement",
	ReasonInto:         "select into",
	ReasonLock:         "row lock",
	ReasonFunction:     "function",
	ReasonTable:        "primary-only table",
	ReasonCatalog:      "catalogue",
	ReasonSession:      "session state",
	ReasonPlaceholder:  "placeholder as a call",
	ReasonBackslash:    "backslash before a quote",
	ReasonUnicodeName:  "name with Unicode escapes",
	ReasonLongName:     "name over 63 bytes",
	ReasonUnterminated: "unterminated string, name or comment",
	ReasonUnbalanced:   "unbalanced parentheses",
	ReasonDepth:        "nested too deep",
	ReasonEncoding:     "NUL byte or invalid UTF-8",
	ReasonCharacter:    "unexpected character",
	ReasonEmpty:        "empty text",
	ReasonUnknown:      "not understood",
}

// String returns a few lower-case words, such as "row lock".
func (r Reason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return "unknown reason"
}
