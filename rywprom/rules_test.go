package rywprom

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not in the PATH: apt install prometheus")
	}
	cmd := exec.Command("promtool", args...)
	cmd.Dir = "rules"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestRulesAreRules(t *testing.T) { promtool(t, "check", "rules", "ryw.yml") }

func TestRulesFire(t *testing.T) { promtool(t, "test", "rules", "ryw_test.yml") }

// The dashboard's expressions are ones that Prometheus takes: as rules, for promtool.
func TestDashboardParses(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, e := range expressions(t) {
		if strings.HasPrefix(e, "label_values(") {
			continue // Grafana's own
		}
		e = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*").Replace(e)
		fmt.Fprintf(&rules, "  - record: panel%d\n    expr: %s\n", i, strconv.Quote(e))
	}
	name := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(name, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", name)
}

// Every alert has a test of its own.
func TestEveryRuleIsTested(t *testing.T) {
	rules, tests := file(t, "rules/ryw.yml"), file(t, "rules/ryw_test.yml")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 5 {
		t.Fatalf("have %d alerts", len(alerts))
	}
	for _, a := range alerts {
		fires := regexp.MustCompile(`alertname: ` + a[1] + `\n\s+eval_time: \w+\n\s+exp_alerts:`)
		if !fires.MatchString(tests) {
			t.Errorf("%s: no test in which it fires", a[1])
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the rules and the dashboard ask for, a running program exports: each name, and
// each label that is asked for, with that value.
func TestExpressionsNameWhatIsExported(t *testing.T) {
	have := gather(t, running(t))
	for _, e := range expressions(t) {
		for _, s := range selectors(e) {
			if strings.HasPrefix(s.name, "cluster:") {
				if !strings.Contains(file(t, "rules/ryw.yml"), "record: "+s.name+"\n") {
					t.Errorf("%s: no rule records %s", e, s.name)
				}
				continue
			}
			if missing := s.missing(have); missing != "" {
				t.Errorf("%s: %s", e, missing)
			}
		}
		for _, label := range grouped(e) {
			if !slices.ContainsFunc(selectors(e), func(s selector) bool {
				_, ok := have.sum(s.name, label+`="`)
				return ok || strings.HasPrefix(s.name, "cluster:")
			}) {
				t.Errorf("%s: nothing has the label %q", e, label)
			}
		}
	}
}

// The test above finds what is wrong.
func TestWrongExpressionsAreFound(t *testing.T) {
	have := gather(t, running(t))
	for _, e := range []string{
		`rate(ryw_read_total[5m])`, `ryw_node_state{state="dead"}`, `ryw_replica_gap_bytes{nodes="x"}`,
		`sum(rate(ryw_read_wait_seconds[5m]))`, `ryw_node_state{state=~"ineligible|sick"}`,
	} {
		if s := selectors(e); len(s) != 1 || s[0].missing(have) == "" {
			t.Errorf("%s: have %+v", e, s)
		}
	}
	if have := grouped(`sum by (node, le) (x) / sum without (reason) (y)`); !slices.Equal(have, []string{"node", "le", "reason"}) {
		t.Errorf("have %q", have)
	}
}

// expressions are all of the rules' and of the dashboard's.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	rules := regexp.MustCompile(`(?m)^\s+expr: (?:>-\n((?:\s{10,}.*\n)+)|(.*)\n)`).FindAllStringSubmatch(file(t, "rules/ryw.yml"), -1)
	for _, m := range rules {
		all = append(all, strings.Join(strings.Fields(m[1]+m[2]), " "))
	}
	if n := strings.Count(file(t, "rules/ryw.yml"), "expr:"); n != len(all) || n < 9 {
		t.Fatalf("have %d expressions of the rules, want %d", len(all), n)
	}
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(file(t, "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if v.Type == "query" {
			all = append(all, v.Definition)
		}
	}
	return all
}

// selector is a name with what is asked of its labels.
type selector struct {
	name  string
	match [][]string // label, operator, value
}

var (
	selects = regexp.MustCompile(`\b((?:cluster:)?ryw_[a-z0-9_:]+)(\{[^}]*\})?`)
	matches = regexp.MustCompile(`(\w+)(=~|!=|!~|=)"([^"]*)"`)
	groups  = regexp.MustCompile(`\b(?:by|without|on|ignoring) ?\(([^)]*)\)`)
)

func selectors(e string) (all []selector) {
	for _, m := range selects.FindAllStringSubmatch(e, -1) {
		all = append(all, selector{m[1], matches.FindAllStringSubmatch(m[2], -1)})
	}
	return all
}

func grouped(e string) (labels []string) {
	for _, m := range groups.FindAllStringSubmatch(e, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	return labels
}

// missing says what of a selector is not exported.
func (s selector) missing(have samples) string {
	if _, ok := have.sum(s.name); !ok {
		return "nothing is exported as " + s.name
	}
	for _, m := range s.match {
		label, value := m[1], m[3]
		if strings.HasPrefix(value, "$") { // job and instance, which Prometheus adds
			continue
		}
		for one := range strings.SplitSeq(value, "|") {
			if _, ok := have.sum(s.name, label+`="`+one+`"`); !ok {
				return "no " + s.name + " has " + label + "=" + one
			}
		}
	}
	return ""
}
