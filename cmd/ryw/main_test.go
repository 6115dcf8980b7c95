package main

import (
	"strings"
	"testing"
)

// What the program says of a command line; suite_test/doctor runs it on servers.
func TestCommandLine(t *testing.T) {
	const dsn = "host=127.0.0.1 port=1 user=u password=hunter2 connect_timeout=2"
	env := func(name string) string { return map[string]string{"PRIMARY": dsn}[name] }
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"":                         {misused, "usage"},
		"heal":                     {misused, "usage"},
		"doctor -h":                {healthy, "-replica"},
		"doctor -primary x":        {misused, "-replica is missing"},
		"doctor -replica x":        {misused, "-primary is missing"},
		"doctor -primary env:NONE": {misused, "NONE is empty"},
		"doctor -primary env:PRIMARY -replica env:PRIMARY hunter2":       {misused, "1 arguments"},
		"doctor -primary postgres://u:hunter2@h:x/ -replica env:PRIMARY": {misused, "primary: "},
		"doctor -primary env:PRIMARY -replica env:PRIMARY":               {failed, "doctor: fail=2"},
		"doctor -json -primary env:PRIMARY -replica env:PRIMARY":         {failed, `"failed": true`},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), strings.Fields(line), env, &out, &errs)
		all := out.String() + errs.String()
		if code != want.code || !strings.Contains(all, want.says) || strings.Contains(all, "hunter2") {
			t.Errorf("%q: have status %d, want %d and %q, no password:\n%s", line, code, want.code, want.says, all)
		}
		if report := code == failed; report != (out.Len() > 0) {
			t.Errorf("%q: standard output: have %q", line, out.String())
		}
	}
}
