#!/usr/bin/env bash
# Makes the file system of the image: a minimal Debian with one PostgreSQL.
# build-image.sh runs it in a mount and PID namespace of its own.
#
# usage: rootfs.sh SUITE VERSION FOLDER
#
# Its last line of output is the server's version. Exit status 3: the suite has
# no such PostgreSQL.
set -euo pipefail

readonly suite=$1 version=$2 root=$3
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# inside runs a command in the new system, without the caller's environment but
# for a proxy.
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		chroot "$root" "$@"
}

# forbid_services keeps the packages from starting a server or making a cluster.
forbid_services() {
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	mkdir -p "$root/etc/postgresql-common/createcluster.d"
	echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.d/image.conf"
}

# configure_dpkg keeps out what nobody reads in a container (licences stay), and
# saves the time of syncing each file: a build cut short is thrown away.
configure_dpkg() {
	cat >"$root/etc/dpkg/dpkg.cfg.d/image" <<-'END'
		force-unsafe-io
		path-exclude=/usr/share/doc/*
		path-include=/usr/share/doc/*/copyright
		path-exclude=/usr/share/info/*
		path-exclude=/usr/share/locale/*
		path-exclude=/usr/share/man/*
	END
	find "$root/usr/share/doc" ! -name copyright ! -type d -delete
	rm -rf "$root"/usr/share/{info,locale,man}/*
}

# add_user takes the official image's ids, so that a volume fits both images.
add_user() {
	inside groupadd --system --gid 999 postgres
	inside useradd --system --gid postgres --uid 999 \
		--home-dir /var/lib/postgresql --shell /bin/bash postgres
}

# install_postgres needs /proc for a package's systemd-tmpfiles (seen in sid).
install_postgres() {
	mount -t proc proc "$root/proc"
	inside apt-get install --yes --no-install-recommends "postgresql-$version"
	umount "$root/proc"
	sed -i "s/^#listen_addresses = .*/listen_addresses = '*'/" \
		"$root/usr/share/postgresql/$version/postgresql.conf.sample"
	inside install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data
	inside install -d -o postgres -g postgres -m 3777 /run/postgresql
	install -m 755 "$here/docker-entrypoint.sh" "$root/usr/local/bin/"
}

shrink() {
	inside apt-get clean
	rm -rf "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/var/cache/* \
		"$root"/var/lib/dpkg/*-old "$root"/usr/sbin/policy-rc.d
	rm -f "$root/etc/ssl/private/ssl-cert-snakeoil.key" "$root/etc/ssl/certs/ssl-cert-snakeoil.pem"
}

debootstrap --variant=minbase --force-check-gpg "$suite" "$root"
found=$(inside apt-cache search --names-only "^postgresql-$version\$")
[ -n "$found" ] || exit 3
forbid_services
configure_dpkg
add_user
install_postgres
shrink
inside "/usr/lib/postgresql/$version/bin/postgres" --version
