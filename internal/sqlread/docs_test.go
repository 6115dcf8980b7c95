package sqlread

import (
	"os"
	"strings"
	"testing"
)

// documentedRules are the rules printed in the document.
const documentedRules = "\tSafeFunctions:    []string{\"similarity\", \"public.st_distance\"},\n" +
	"\tWritingFunctions: []string{\"lower\", \"app.touch\"},\n" +
	"\tPrimaryTables:    []string{\"accounts\", \"billing.invoices\"},\n"

// TestDocument holds every row of the document's tables against the classifier.
func TestDocument(t *testing.T) {
	content, err := os.ReadFile("../../docs/read-or-write.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if !strings.Contains(text, documentedRules) {
		t.Error("the document does not print the rules that this test uses")
	}
	plain := newClassifier(t, Rules{})
	declared := newClassifier(t, Rules{
		SafeFunctions:    []string{"similarity", "public.st_distance"},
		WritingFunctions: []string{"lower", "app.touch"},
		PrimaryTables:    []string{"accounts", "billing.invoices"},
	})
	sections := map[string]func(string) Verdict{
		"Statements":                 plain.Statement,
		"Fragments of built queries": plain.Fragment,
		"Declared names":             declared.Statement,
	}
	for name, classify := range sections {
		rows := documentRows(section(text, name))
		if len(rows) < 10 {
			t.Errorf("%s: have %d rows, want 10 or more", name, len(rows))
		}
		for _, row := range rows {
			checkRow(t, row, classify)
		}
	}
}

// section returns the part of the text under a heading of the second level.
func section(text, heading string) string {
	_, text, _ = strings.Cut(text, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// documentRows returns the cells of the rows that begin with a code span.
func documentRows(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		rows = append(rows, cells)
	}
	return rows
}

func checkRow(t *testing.T, cells []string, classify func(string) Verdict) {
	t.Helper()
	if len(cells) != 3 || !strings.HasSuffix(cells[0], "`") {
		t.Errorf("have %d cells in %q, want 3", len(cells), cells)
		return
	}
	v := classify(strings.Trim(cells[0], "`"))
	node := "primary"
	if v.Pure {
		node = "replica"
	}
	if cells[1] != node || cells[2] != v.String() {
		t.Errorf("%s\nthe document says %s, %s\nhave %s, %s", cells[0], cells[1], cells[2], node, v)
	}
}
