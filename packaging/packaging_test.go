package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSetVersion(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.work"), "go 1.25.0\n\nuse ./a\n\nreplace (\n\t"+rootPath+" v0.0.0 => ./\n\t"+
		rootPath+"/a v0.0.0 => ./a\n)\n")
	write(t, filepath.Join(dir, "a", "go.mod"), "module "+rootPath+"/a\n\nrequire (\n\t"+rootPath+" v0.0.0\n\tgorm.io/gorm v1.31.2\n)\n\nreplace "+rootPath+" => ../\n")
	modules, err := modulesOf(dir)
	if err != nil || !slices.Equal(modules, []mod{{"a"}}) {
		t.Fatalf("have %v, %v", modules, err)
	}
	if err := setVersion(dir, modules, "v0.3.0"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"go.work":  "go 1.25.0\n\nuse ./a\n\nreplace (\n\t" + rootPath + " v0.3.0 => ./\n\t" + rootPath + "/a v0.3.0 => ./a\n)\n",
		"a/go.mod": "module " + rootPath + "/a\n\nrequire (\n\t" + rootPath + " v0.3.0\n\tgorm.io/gorm v1.31.2\n)\n\nreplace " + rootPath + " => ../\n",
	} {
		if have, err := os.ReadFile(filepath.Join(dir, file)); string(have) != want {
			t.Errorf("%s: have %s, %v, want %s", file, have, err, want)
		}
	}
	for _, version := range []string{"", "0.3.0", "v0.3", "latest"} {
		if err := setVersion(dir, modules, version); err == nil {
			t.Errorf("version %q is taken", version)
		}
	}
}

func TestWhatUsersHave(t *testing.T) {
	const source = "module m\n\ngo 1.25.0\n\nrequire (\n\t" + rootPath + " v0.1.0\n\t" + rootPath + "/suite_test v0.1.0\n)\n\n" +
		"replace (\n\tgorm.io/gorm => ./gorm\n\t" + rootPath + " => ../\n\t" + rootPath + "/suite_test => ../suite_test\n)\n"
	have, err := asUsersHaveIt("go.mod", []byte(source), mod{"bench"})
	if err != nil || strings.Contains(string(have), "../") || !strings.Contains(string(have), "gorm => ./gorm") {
		t.Errorf("have %s, %v", have, err)
	}
	if _, err := asUsersHaveIt("go.mod", []byte(source), mod{"rywgrpc"}); err == nil {
		t.Error("what is released may require what is not")
	}
}

func TestLicences(t *testing.T) {
	mit, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const mpl = "This Source Code Form is subject to the terms of the Mozilla Public\n" +
		"License, v. 2.0. If a copy of the MPL was not distributed with this\n" +
		"file, You can obtain one at http://mozilla.org/MPL/2.0/.\n"
	for _, c := range []struct {
		name, file, text string
		ids              string
		shipped, inside  bool
	}{
		{"ours", "LICENSE", string(mit), "MIT", true, true},
		{"another name", "licence.md", string(mit), "MIT", true, true},
		{"MPL", "LICENSE", mpl, "MPL-2.0", false, true},
		{"two", "LICENSE", string(mit) + mpl, "MIT, MPL-2.0", false, true},
		{"a source file", "license.go", string(mit), "", false, false},
		{"none", "README", string(mit), "", false, false},
		{"something else", "LICENSE", "You may look at it on Sundays.", "", false, false},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, c.file), c.text)
		ids, err := licencesIn(dir)
		if have := strings.Join(ids, ", "); have != c.ids || (err == nil) != (c.ids != "") {
			t.Errorf("%s: have %s, %v, want %s", c.name, have, err, c.ids)
		}
		if err != nil {
			continue
		}
		if err := (mod{"."}).may(ids); (err == nil) != c.shipped {
			t.Errorf("%s: in what others import: %v", c.name, err)
		}
		if err := (mod{"examples"}).may(ids); (err == nil) != c.inside {
			t.Errorf("%s: in examples: %v", c.name, err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
