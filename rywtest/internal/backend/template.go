package backend

import "slices"

// recorded are the settings that a data directory remembers and a standby
// compares its own with: a standby whose value is lower than the recorded one
// refuses to run (PostgreSQL manual, 27.4.3). The template is made with them.
var recorded = []string{
	"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions",
	"max_locks_per_transaction", "wal_level", "wal_log_hints", "track_commit_timestamp",
}

// Recorded returns, as text for postgresql.conf, the settings that become part of
// the template.
func (s Spec) Recorded() string {
	settings := map[string]string{}
	for _, name := range recorded {
		if value, ok := s.Settings[name]; ok {
			settings[name] = value
		}
	}
	return Render(settings)
}

// initArgs make a database cluster with data checksums, as PostgreSQL 18 does by
// default and pg_rewind needs.
var initArgs = []string{
	"--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync",
}

// InitdbArgs returns all arguments of initdb but the data directory.
func (s Spec) InitdbArgs() []string { return slices.Concat(initArgs, s.InitArgs) }
