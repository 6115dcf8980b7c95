#!/usr/bin/env bash
# The entry point of the image that build-image.sh makes: the part of the
# official postgres image's that the cluster needs, under the same names.
#
# A server (the default, or arguments that begin with "postgres" or "-") runs as
# the user postgres, on PGDATA, which is initialised if it is empty:
#   POSTGRES_USER              the superuser; default postgres
#   POSTGRES_PASSWORD          its password
#   POSTGRES_HOST_AUTH_METHOD  how clients log in; "trust" needs no password
# Anything else is run as it is.
set -euo pipefail

init() {
	local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256} password=${POSTGRES_PASSWORD:-}
	if [ -z "$password" ] && [ "$method" != trust ]; then
		echo 'docker-entrypoint: set POSTGRES_PASSWORD, or POSTGRES_HOST_AUTH_METHOD=trust' >&2
		exit 1
	fi
	initdb --username="${POSTGRES_USER:-postgres}" \
		${password:+--pwfile=<(printf '%s\n' "$password")}
	printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"
}

[ "${1:0:1}" != - ] || set -- postgres "$@"
if [ "$1" = postgres ]; then
	if [ "$(id -u)" = 0 ]; then
		install -d -o postgres -g postgres -m 700 "$PGDATA"
		exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
	fi
	[ -s "$PGDATA/PG_VERSION" ] || init
	unset POSTGRES_PASSWORD
fi
exec "$@"
