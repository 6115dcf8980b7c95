package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../.."

// block is a fenced block of a document.
type block struct {
	file  string // from the root
	line  int    // of its first line
	lang  string
	words []string // behind the language
	text  string
}

// documents returns the paths, from the root, of all documents.
func documents(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(root + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root+"/docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i], _ = strings.CutPrefix(found[i], root+"/")
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// allBlocks returns the blocks of all documents.
func allBlocks(t *testing.T) []block {
	t.Helper()
	var all []block
	for _, file := range documents(t) {
		all = append(all, blocksOf(t, file, read(t, file))...)
	}
	return all
}

func blocksOf(t *testing.T, file, text string) []block {
	t.Helper()
	var all []block
	var open *block
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		fence := strings.HasPrefix(bare, "```")
		switch {
		case fence && open == nil:
			open = &block{file: file, line: i + 2}
			if info := strings.Fields(strings.TrimPrefix(bare, "```")); len(info) > 0 {
				open.lang, open.words = info[0], info[1:]
			}
			indent = line[:len(line)-len(bare)]
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		t.Errorf("%s:%d: block is not closed", file, open.line)
	}
	return all
}

func in(blocks []block, lang string) []block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return b.lang != lang })
}

func TestBlocksAreFound(t *testing.T) {
	have := blocksOf(t, "x.md", "a\n```sql replica\nselect 1;\n```\n- b\n  ```\n  c\n   d\n  ```\n")
	want := []block{
		{"x.md", 3, "sql", []string{"replica"}, "select 1;\n"},
		{"x.md", 7, "", nil, "c\n d\n"},
	}
	if len(have) != 2 || !same(have[0], want[0]) || !same(have[1], want[1]) {
		t.Errorf("have %+v, want %+v", have, want)
	}
}

func same(a, b block) bool {
	return a.file == b.file && a.line == b.line && a.lang == b.lang && a.text == b.text &&
		slices.Equal(a.words, b.words)
}

// TestLanguages lists what is not compiled, and keeps a block from being written
// without saying what it is.
func TestLanguages(t *testing.T) {
	known := []string{"go", "sql", "sh", "yaml", "ini", "json", "promql", "text"}
	for _, b := range allBlocks(t) {
		switch {
		case !slices.Contains(known, b.lang):
			t.Errorf("%s:%d: block is %q, want one of %q", b.file, b.line, b.lang, known)
		case b.lang != "go" && b.lang != "text":
			t.Logf("%s:%d: %s %s", b.file, b.line, b.lang, strings.Join(b.words, " "))
		}
	}
}

func TestREADMEIsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n >= 250 {
		t.Errorf("README.md has %d lines, want fewer than 250", n)
	}
}
