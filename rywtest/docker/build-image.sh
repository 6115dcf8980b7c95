#!/usr/bin/env bash
# Builds a stand-in for the official postgres image from Debian packages, for
# machines that cannot pull from a registry.
#
# usage: build-image.sh [--force] 15|17|18
#
# The image is gorm-ryw/postgres:VERSION. Like the official one it has a user
# postgres (uid 999), PGDATA=/var/lib/postgresql/data on a volume, the server's
# programs on PATH and STOPSIGNAL SIGINT; its locale is C.UTF-8. An image that
# exists and was built by these same files is kept; --force builds it anew.
#
# exit status:
#   0  the image is there
#   1  the build failed
#   2  wrong usage
#   3  absent: Debian's suite no longer has that version
#   4  the image has to be built, which only root can
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here exit_usage=2 exit_absent=3 exit_not_root=4
work= # the temporary folder, once it exists
child= # the running sandbox, while there is one

say() { printf 'build-image: %s\n' "$*"; }

fail() {
	printf 'build-image: %s\n' "$2" >&2
	exit "$1"
}

cleanup() {
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	[ -n "$work" ] || return 0
	docker image rm "$base" >/dev/null 2>&1 || true # the name; the image is kept by its child
	rm -rf --one-file-system -- "$work"
}

usage() { fail "$exit_usage" 'usage: build-image.sh [--force] 15|17|18'; }

suite_of() {
	case $1 in
	15) echo bookworm ;;
	17) echo trixie ;;
	18) echo sid ;;
	*) return 1 ;;
	esac
}

# recipe identifies the files that an image is made from.
recipe() {
	(cd "$here" && cat build-image.sh rootfs.sh docker-entrypoint.sh) | sha256sum | cut -c 1-16
}

# built tells whether the image exists and comes from this recipe.
built() {
	local label
	label=$(docker image inspect --format '{{index .Config.Labels "gorm-ryw.recipe"}}' "$image" 2>/dev/null) || return 1
	[ "$label" = "$(recipe)" ]
}

# lock waits until no other run holds the named lock; it is held until exit.
lock() {
	exec {lock_fd}>"/run/lock/gorm-ryw-$1.lock"
	flock "$lock_fd"
}

install_debootstrap() {
	command -v debootstrap >/dev/null && return 0
	command -v apt-get >/dev/null || fail 1 'debootstrap is missing, and there is no apt-get to install it'
	lock apt
	command -v debootstrap >/dev/null && return 0
	say 'installing debootstrap'
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends debootstrap debian-archive-keyring >/dev/null
}

# sandbox runs a command whose mounts and processes end with it, and which
# cleanup can end at any time.
sandbox() {
	local status=0
	unshare --mount --pid --fork --kill-child -- "$@" &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

make_rootfs() {
	local status=0
	sandbox "$here/rootfs.sh" "$suite" "$version" "$work/root" >"$work/log" 2>&1 || status=$?
	case $status in
	0) ;;
	"$exit_absent")
		say "absent: Debian $suite has no postgresql-$version any more"
		exit "$exit_absent"
		;;
	*)
		tail -n 40 "$work/log" >&2
		fail 1 "building Debian $suite with postgresql-$version failed (status $status)"
		;;
	esac
}

# import makes the base image; an older one of that name ends up without a name.
import() {
	tar --create --numeric-owner --directory "$work/root" . | docker import \
		--message "PostgreSQL $version from Debian $suite" \
		--change "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/$version/bin" \
		--change 'ENV LANG=C.UTF-8' \
		--change "ENV PG_MAJOR=$version" \
		--change 'ENV PGDATA=/var/lib/postgresql/data' \
		--change 'VOLUME /var/lib/postgresql/data' \
		--change 'EXPOSE 5432' \
		--change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
		--change 'CMD ["postgres"]' \
		--change "LABEL gorm-ryw.recipe=$(recipe)" \
		- "$base" >/dev/null
}

# finish adds what docker import cannot set, names the image, and removes the
# one that had the name before, unless a container still uses it.
finish() {
	local old
	old=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null) || old=
	printf 'FROM %s\nSTOPSIGNAL SIGINT\n' "$base" | docker build --quiet --tag "$image" - >"$work/log" 2>&1 ||
		fail 1 "docker build failed: $(tail -n 3 "$work/log")"
	[ -z "$old" ] || docker image rm "$old" >/dev/null 2>&1 || true
}

force=
version=
for arg; do
	case $arg in
	--force) force=yes ;;
	*)
		[ -z "$version" ] || usage
		version=$arg
		;;
	esac
done
suite=$(suite_of "$version") || usage
docker version >/dev/null || fail 1 'no docker engine answers'
readonly force version suite image=gorm-ryw/postgres:$version base=gorm-ryw/postgres:$version-base

if [ -z "$force" ] && built; then
	say "$image exists"
	exit 0
fi
[ "$(id -u)" = 0 ] || fail "$exit_not_root" "$image has to be built, and debootstrap works as root only: run this as root"
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

lock "image-$version"
if [ -z "$force" ] && built; then
	say "$image exists (built by another run just now)"
	exit 0
fi
install_debootstrap
rm -rf --one-file-system -- "${TMPDIR:-/tmp}/gorm-ryw-image-$version."* # of runs that were killed
work=$(mktemp -d -t "gorm-ryw-image-$version.XXXXXX")
say "building $image from Debian $suite"
make_rootfs
server=$(tail -n 1 "$work/log")
import
finish
say "$image built in $SECONDS s, $(docker image inspect --format '{{.Size}}' "$image" | numfmt --to=si)B: $server"
