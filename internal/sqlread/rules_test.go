package sqlread

import (
	"strings"
	"testing"
)

var testRules = Rules{
	SafeFunctions:    []string{"similarity", "public.st_distance", `"CamelCase"`, `app."Odd.Name"`, "both_ways", "archive.safe_there", "log", "other.move"},
	WritingFunctions: []string{"lower", "app.touch", "both_ways", `"Writes"`, "archive.move"},
	PrimaryTables:    []string{"accounts", "billing.invoices", `"Mixed"`, "größen", "order"},
}

func TestRulesOnFunctions(t *testing.T) {
	c := newClassifier(t, testRules)
	for _, sql := range []string{
		`select similarity(a, b) from t`, `select SIMILARITY(a, b) from t`, `select "similarity"(a, b) from t`,
		`select public.st_distance(a, b) from t`, `select PUBLIC . st_distance(a, b) from t`,
		`select "CamelCase"(1)`, `select app."Odd.Name"(1)`, `select upper('a'), log(1)`,
		`select archive.safe_there(1)`, `select other.move(1)`, `select touched from t`,
	} {
		if v := c.Statement(sql); !v.Pure {
			t.Errorf("%s\nhave %v, want pure read", sql, v)
		}
	}
	for _, sql := range []string{
		`select public.similarity(a, b)`, // declared without a schema
		`select st_distance(a, b)`, `select other.st_distance(a, b)`, `select db.public.st_distance(a, b)`,
		`select CamelCase(1)`, `select camelcase(1)`, `select "camelcase"(1)`, `select app.odd.name(1)`, `select app."Odd"."Name"(1)`,
		`select lower('a')`, `select pg_catalog.lower('a')`, `select "Lower"('a')`, `select any_schema.lower('a')`, `select db.x.lower('a')`,
		`select touch(1)`, `select app.touch(1)`, `select APP.Touch(1)`, `select other.touch(1)`,
		`select both_ways(1)`, `select writes(1)`, `select "WRITES"(1)`,
		`select t.lower from t`, `select t.touch from t`, `select (t).lower from t`, `select app.t.touch from app.t`,
		`select move(1)`, `select t.move from t`,
	} {
		if v := c.Statement(sql); v.Reason != ReasonFunction {
			t.Errorf("%s\nhave %v, want %v", sql, v, ReasonFunction)
		}
	}
}

func TestRulesOnTables(t *testing.T) {
	c := newClassifier(t, testRules)
	for _, sql := range []string{
		`select * from account`, `select 'accounts'`, `select accounts_id from t`, `select * from other.invoices`, `select i.invoices from t i`,
		`select $$accounts$$ -- accounts` + "\n", `select * from t /* accounts */`, `select billing from t`, `select * from t order by a`,
	} {
		if v := c.Statement(sql); !v.Pure {
			t.Errorf("%s\nhave %v, want pure read", sql, v)
		}
	}
	for _, sql := range []string{
		`select * from accounts`, `select * from Accounts`, `select * from "accounts"`, `select * from "ACCOUNTS"`, `table accounts`, `table only accounts`,
		`select * from public.accounts`, `select * from public . "accounts" a`, `select * from t, accounts`, `select * from t join accounts using (id)`,
		`select * from t where id in (select id from accounts)`, `with x as (table accounts) select 1`, `explain analyze select * from accounts`,
		`select accounts from t`, `select t.accounts from t`, `select 1 as accounts`, `with accounts as (select 1) table accounts`,
		`select * from billing.invoices`, `select * from BILLING."Invoices"`, `select * from "Billing".invoices`, `select * from invoices`, `select * from db.billing.invoices`,
		`select billing.invoices.id from t`, `select (x).invoices from t`,
		`select * from "order"`, `select * from public.order`, `select * from mixed`, `select * from "MIXED"`, `select * from größen`, `select * from GRÖSSEN` + `, GRÖßEN`,
	} {
		if v := c.Statement(sql); v.Reason != ReasonTable && v.Reason != ReasonFunction {
			t.Errorf("%s\nhave %v, want %v", sql, v, ReasonTable)
		}
	}
	for _, sql := range []string{`accounts`, `left join accounts a on a.id = t.id`, `(select 1 from billing.invoices) x`, `accounts.id = ?`} {
		if v := c.Fragment(sql); v.Reason != ReasonTable {
			t.Errorf("%s\nhave %v, want %v", sql, v, ReasonTable)
		}
	}
}

func TestRulesDoNotChange(t *testing.T) {
	r := Rules{PrimaryTables: []string{"accounts"}, SafeFunctions: []string{"f"}}
	c := newClassifier(t, r)
	r.PrimaryTables[0], r.SafeFunctions[0] = "other", "g"
	if v := c.Statement(`select f(1)`); !v.Pure {
		t.Errorf("f: have %v, want pure read", v)
	}
	if v := c.Statement(`select * from accounts`); v.Reason != ReasonTable {
		t.Errorf("accounts: have %v, want %v", v, ReasonTable)
	}
	if v := newClassifier(t, Rules{}).Statement(`select * from accounts`); !v.Pure {
		t.Errorf("accounts without rules: have %v, want pure read", v)
	}
}

func TestNewRefusesNames(t *testing.T) {
	long := strings.Repeat("a", maxName)
	for _, good := range []string{"f", "a.b", `"a b"`, ` a . "B""c" `, long, long + "." + long, "order", "größe", `"` + long[1:] + `"""`} {
		newClassifier(t, Rules{SafeFunctions: []string{good}, WritingFunctions: []string{good}, PrimaryTables: []string{good}})
	}
	fields := map[string]func(string) Rules{
		"SafeFunctions":    func(s string) Rules { return Rules{SafeFunctions: []string{"a", s}} },
		"WritingFunctions": func(s string) Rules { return Rules{WritingFunctions: []string{"a", s}} },
		"PrimaryTables":    func(s string) Rules { return Rules{PrimaryTables: []string{"a", s}} },
	}
	for field, rules := range fields {
		for _, bad := range []string{"", " ", "a b", "a.", ".a", "a.b.c", "a()", "a,b", "a;", `"a`, `""`, "1a", "'a'", "a.*", "a?", `U&"a"`, long + "a", `"` + long + `a"`, "a/*"} {
			c, err := New(rules(bad))
			if err == nil || c != nil {
				t.Errorf("%s %q: have no error", field, bad)
				continue
			}
			if !strings.HasPrefix(err.Error(), field+": ") || !strings.Contains(err.Error(), "want name or schema.name") {
				t.Errorf("%s %q: have error %q", field, bad, err)
			}
		}
	}
}
