#!/usr/bin/env bash
# Runs one server of compose.yaml, as the user postgres, in any image that has
# bash and the server's programs on PATH.
#
# usage: node.sh primary|replica
#
# An empty PGDATA is filled first: by initdb on the primary, by a base backup of
# the host "primary" on a replica. Either is made beside PGDATA and moved there
# when complete, so that an interrupted first start is simply repeated.
set -euo pipefail

make_primary() {
	initdb --pgdata="$1" --username="$PGUSER" --pwfile=<(printf '%s\n' "$PGPASSWORD") \
		--auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
	printf 'host %s all all scram-sha-256\n' all replication >>"$1/pg_hba.conf"
	# Enough for a replica that was away for a while.
	printf "%s\n" "listen_addresses = '*'" "wal_keep_size = '512MB'" >>"$1/postgresql.conf"
}

make_replica() {
	pg_basebackup --pgdata="$1" --host=primary --write-recovery-conf --wal-method=stream \
		--checkpoint=fast
}

role=$1
if [ ! -e "$PGDATA/PG_VERSION" ]; then
	rm -rf "$PGDATA.new"
	"make_$role" "$PGDATA.new"
	mv "$PGDATA.new" "$PGDATA"
fi
exec postgres
