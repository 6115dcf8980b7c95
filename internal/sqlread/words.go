package sqlread

import (
	"strings"
	"sync"
)

// wordInfo is what the vocabulary knows of a word: a key in the low byte and
// flags above. Zero is an ordinary name.
type wordInfo uint16

const (
	// reserved words are never a table's or function's name without quotes.
	reserved wordInfo = 1 << (8 + iota)
	// uncallable words are never a function's name without quotes, so that a
	// parenthesis after one is no call of a user's function.
	uncallable
	// harmless words are functions that neither write nor change the session.
	harmless
)

func (w wordInfo) key() wordKey         { return wordKey(w) }
func (w wordInfo) has(f wordInfo) bool  { return w&f != 0 }
func (w wordInfo) is(k ...wordKey) bool { return containsKey(k, w.key()) }

func containsKey(keys []wordKey, k wordKey) bool {
	for _, have := range keys {
		if have == k {
			return true
		}
	}
	return false
}

// wordKey names the words that the parser treats one by one.
type wordKey uint8

const (
	keyNone wordKey = iota
	keyAll
	keyAnalyze
	keyAs
	keyBeforeOperand // words, not reserved, after which an operand begins
	keyBy
	keyCharType // char, bit and the like, before "varying"
	keyColumns
	keyCube
	keyCycle
	keyDelete
	keyDistinct
	keyExplain
	keyFor
	keyFrom
	keyGroup
	keyGrouping
	keyILike
	keyInsert
	keyInto
	keyJoin
	keyJoinKind // left, right, cross …
	keyLock     // what follows FOR in a lock clause
	keyMaterialized
	keyMerge
	keyNot
	keyOn
	keyOnly
	keyOrder
	keyOrdinality
	keyOwnGrammar // functions whose arguments have words between them
	keyPartition
	keyRecursive
	keyRollup
	keySearch
	keySelect
	keySet
	keySets
	keyShow
	keySubstring // substring and overlay, whose FOR is no lock
	keyTable
	keyTableSample
	keySampling // bernoulli, system
	keyTime
	keyUpdate
	keyValues
	keyVarying
	keyVerbose
	keyWith
	keyZone
)

var keyWords = map[wordKey]string{
	keyAll:           "all",
	keyAnalyze:       "analyze analyse",
	keyAs:            "as",
	keyBeforeOperand: "escape first groups is isnull like next notnull overlaps passing range rows similar",
	keyBy:            "by",
	keyCharType:      "bit char character nchar",
	keyColumns:       "columns",
	keyCube:          "cube",
	keyCycle:         "cycle",
	keyDelete:        "delete",
	keyDistinct:      "distinct",
	keyExplain:       "explain",
	keyFor:           "for",
	keyFrom:          "from",
	keyGroup:         "group",
	keyGrouping:      "grouping",
	keyILike:         "ilike",
	keyInsert:        "insert",
	keyInto:          "into",
	keyJoin:          "join",
	keyJoinKind:      "cross full inner left natural outer right",
	keyLock:          "key no share",
	keyMaterialized:  "materialized",
	keyMerge:         "merge",
	keyNot:           "not",
	keyOn:            "on",
	keyOnly:          "only",
	keyOrder:         "order",
	keyOrdinality:    "ordinality",
	keyOwnGrammar: "json_array json_arrayagg json_exists json_object json_objectagg json_query json_serialize " +
		"json_table json_value xmlelement xmlexists xmlparse xmlpi xmlroot xmlserialize xmltable",
	keyPartition:   "partition",
	keyRecursive:   "recursive",
	keyRollup:      "rollup",
	keySampling:    "bernoulli system",
	keySearch:      "search",
	keySelect:      "select",
	keySet:         "set",
	keySets:        "sets",
	keyShow:        "show",
	keySubstring:   "overlay substring",
	keyTable:       "table",
	keyTableSample: "tablesample",
	keyTime:        "time",
	keyUpdate:      "update",
	keyValues:      "values",
	keyVarying:     "varying",
	keyVerbose:     "verbose",
	keyWith:        "with",
	keyZone:        "zone",
}

// reservedWords are the reserved key words (appendix C of the manual, the same
// in 13 to 18 but for system_user, which needs no entry).
const reservedWords = `
all analyse analyze and any array as asc asymmetric both case cast check
collate column constraint create current_catalog current_date current_role
current_time current_timestamp current_user default deferrable desc distinct do
else end except false fetch for foreign from grant group having in initially
intersect into lateral leading limit localtime localtimestamp not null offset
on only or order placing primary references returning select session_user some
symmetric table then to trailing true union unique user using variadic when
where window with`

// uncallableWords are the key words that are "non-reserved (cannot be function
// or type)". Those of SQL/JSON became such in 16 and 17; before, they could
// name a user's function.
const uncallableWords = `
between bigint bit boolean char character coalesce dec decimal exists extract
float greatest grouping inout int integer interval least national nchar none
normalize nullif numeric out overlay position precision real row setof smallint
substring time timestamp treat trim values varchar xmlattributes xmlconcat
xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot
xmlserialize xmltable
json json_array json_arrayagg json_exists json_object json_objectagg json_query
json_scalar json_serialize json_table json_value`

// longestWord bounds the words of the vocabulary.
const longestWord = 48

// vocabulary knows every word by its lower-case spelling.
type vocabulary map[string]wordInfo

// sharedVocabulary builds the vocabulary once, when it is first needed.
var sharedVocabulary = sync.OnceValue(func() vocabulary {
	v := vocabulary{}
	v.flag(reservedWords, reserved|uncallable)
	v.flag(uncallableWords, uncallable)
	v.flag(harmlessFunctions, harmless)
	for key, words := range keyWords {
		v.flag(words, wordInfo(key))
	}
	return v
})

func (v vocabulary) flag(words string, bits wordInfo) {
	for _, w := range strings.Fields(words) {
		v[w] |= bits
	}
}

// find returns what is known of a word in any case, without allocating.
func (v vocabulary) find(text string) wordInfo {
	var folded [longestWord]byte
	if len(text) > longestWord {
		return 0
	}
	for i := range len(text) {
		folded[i] = lower(text[i])
	}
	return v[string(folded[:len(text)])]
}
