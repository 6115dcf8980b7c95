# Sourced by .ci/run: installs what a fresh Debian machine lacks.
need_root() {
	if [ "$(id -u)" -ne 0 ]; then
		echo "$1 is missing and only root can install it" >&2
		exit 1
	fi
}

command -v go >/dev/null || { echo "Go 1.25 or later is needed: https://go.dev/dl" >&2; exit 1; }

if ! command -v pg_config >/dev/null && ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
	need_root PostgreSQL
	apt-get update -q && apt-get install -yq postgresql postgresql-contrib
fi
if ! command -v gcc >/dev/null; then # the race detector needs cgo
	need_root gcc
	apt-get update -q && apt-get install -yq gcc libc6-dev
fi

# Tests that need these are skipped, by name, where they are missing.
for tool in pgbouncer redis-server promtool:prometheus chromium; do
	if ! command -v "${tool%:*}" >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
		apt-get update -q && apt-get install -yq --no-install-recommends "${tool#*:}"
	fi
done
