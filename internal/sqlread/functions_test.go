package sqlread

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writers are names that must never get onto the list of harmless functions,
// whatever a new catalogue says of them.
var writers = regexp.MustCompile(`^(` + strings.Join([]string{
	`nextval|setval|currval|lastval|set_config|setseed|pg_notify|ts_stat|ts_rewrite`,
	`pg_(try_)?advisory_.*`, `lo_.*|loread|lowrite`, `dblink.*|crosstab.*`, `.*_to_xml.*`,
	`txid_current(_if_assigned)?|pg_current_xact_id.*|pg_export_snapshot`,
	`pg_(terminate|cancel)_backend|pg_reload_conf|pg_rotate_logfile.*|pg_promote|pg_log_.*`,
	`pg_(switch|create|drop|copy|sync|restore|clear|set|import|start|stop|backup)_.*|pg_nextoid|pg_wal_replay_(pause|resume)`,
	`pg_replication_.*|pg_logical_.*|binary_upgrade_.*|pg_stat_(reset|clear|force).*`,
	`pg_current_wal_.*|pg_walfile_name.*|pg_(read|ls|stat_file)_?.*`,
	`brin_(de)?summarize.*|gin_clean.*|RI_.*|.*_validator|.*_handler|pg_event_trigger_.*|pg_sequence_last_value`,
}, "|") + `)$`)

// isWriter excepts pg_lsn and the like from the file functions.
func isWriter(name string) bool {
	return writers.MatchString(name) && !strings.HasPrefix(name, "pg_lsn")
}

func TestHarmlessFunctions(t *testing.T) {
	names := strings.Fields(harmlessFunctions)
	if len(names) < 1500 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("have %d names, want a sorted list of more than 1500 different ones", len(names))
	}
	valid := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	for _, name := range names {
		if !valid.MatchString(name) || len(name) > longestWord {
			t.Errorf("%q is not a lower-case name of at most %d bytes", name, longestWord)
		}
		if isWriter(name) {
			t.Errorf("%s writes, or does not belong to a read on a standby", name)
		}
	}
	for _, name := range strings.Fields(`count sum lower now random gen_random_uuid pg_is_in_recovery inet_server_addr
		inet_server_port pg_backend_pid current_setting pg_postmaster_start_time pg_last_wal_replay_lsn any_value uuidv7`) {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestVocabulary(t *testing.T) {
	v := sharedVocabulary()
	seen := map[string]wordKey{}
	for key, words := range keyWords {
		for _, w := range strings.Fields(words) {
			if other, ok := seen[w]; ok {
				t.Errorf("%s has the keys %d and %d", w, other, key)
			}
			seen[w] = key
			if v[w].key() != key {
				t.Errorf("%s: have key %d, want %d", w, v[w].key(), key)
			}
		}
	}
	for w := range v {
		if len(w) > longestWord {
			t.Errorf("%s is longer than %d bytes and would not be found", w, longestWord)
		}
		if v.find(strings.ToUpper(w)) != v[w] {
			t.Errorf("%s is not found in capitals", w)
		}
	}
	for key := keyNone + 1; key <= keyZone; key++ {
		if _, ok := keyWords[key]; !ok {
			t.Errorf("key %d has no word", key)
		}
	}
}
