package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Licences, by their SPDX names, of what others import together with our modules, and of
// what is used in modules that nobody imports.
var (
	allowed = []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC"}
	inside  = append(slices.Clone(allowed), "MPL-2.0")
)

// dependency is a module that one of ours is compiled with.
type dependency struct{ path, version, dir string }

// checkLicences looks at the dependencies of every module, those of its tests included
// where nobody imports it.
func checkLicences(ctx context.Context, root string, modules []mod) error {
	seen := map[string]string{}
	var wrong error
	for _, m := range modules {
		deps, err := dependenciesOf(ctx, root, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		for _, d := range deps {
			ids, err := licencesIn(d.dir)
			seen[d.path] = strings.Join(ids, ", ")
			if err == nil {
				err = m.may(ids)
			}
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s imports %s %s: %w", m.path(), d.path, d.version, err))
			}
		}
	}
	by := map[string][]string{}
	for dep, ids := range seen {
		by[ids] = append(by[ids], dep)
	}
	for ids, deps := range by {
		slices.Sort(deps)
		fmt.Printf("%s: %s\n", ids, strings.Join(deps, " "))
	}
	return wrong
}

// may reports a licence that the module may not use.
func (m mod) may(ids []string) error {
	list := allowed
	if !m.shipped() {
		list = inside
	}
	for _, id := range ids {
		if !slices.Contains(list, id) {
			return fmt.Errorf("licence is %s, want one of %s", id, strings.Join(list, ", "))
		}
	}
	return nil
}

func dependenciesOf(ctx context.Context, root string, m mod) ([]dependency, error) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}"}
	if !m.shipped() {
		args = append(args, "-test")
	}
	out, err := output(ctx, filepath.Join(root, m.dir), []string{"GOWORK=off"}, "go", append(args, "./...")...)
	if err != nil {
		return nil, err
	}
	lines := slices.Compact(slices.Sorted(strings.SplitSeq(out, "\n")))
	var deps []dependency
	for _, line := range lines {
		parts := strings.Split(line, "\t")
		if len(parts) == 3 && !isOurs(parts[0]) {
			deps = append(deps, dependency{parts[0], parts[1], parts[2]})
		}
	}
	return deps, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying)`)

// enough is which part of a licence's file, in percent, has to be the text of licences.
const enough = 75

// licencesIn returns the licences of a module, by SPDX name. A file that is
// not understood is an error.
func licencesIn(dir string) (ids []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) == ".go" || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		found := licensecheck.Scan(text)
		if found.Percent < enough {
			return nil, fmt.Errorf("%s: %.0f %% of it is the text of a licence, want %d %%", e.Name(), found.Percent, enough)
		}
		for _, match := range found.Match {
			if !slices.Contains(ids, match.ID) {
				ids = append(ids, match.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("has no licence")
	}
	slices.Sort(ids)
	return ids, nil
}
