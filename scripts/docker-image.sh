#!/bin/sh
# Builds a small base image for docker sandboxes from Debian packages: Python,
# pytest, git and tools for debugging sessions, and bubblewrap for the image that
# Dockerfile builds. It does not pull an image: the packages come from the mirror that
# apt uses on this machine.
#
#   scripts/docker-image.sh [NAME]      (default tracesmith-base:latest)
set -eu

name=${1:-tracesmith-base:latest}
case $name in -*) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
packages=python3,python3-pytest,git,procps,less,ca-certificates,bubblewrap

say() { echo "docker-image: $*" >&2; }
need() { command -v "$1" >/dev/null || { say "$1 is missing: install it ($2)"; exit 1; }; }
need docker "Debian, Ubuntu: apt install docker.io"
need debootstrap "Debian, Ubuntu: apt install debootstrap"
docker version >/dev/null 2>&1 || { say "the Docker daemon does not answer: start it, or run this as a user who has access to it"; exit 1; }
[ "$(id -u)" = 0 ] || { say "debootstrap needs root: run this with sudo"; exit 1; }

# The release of this system, and the first mirror that apt uses for it.
. /etc/os-release
release=${VERSION_CODENAME:?is not set in /etc/os-release}
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(CODENAME)' 2>/dev/null |
	awk -v r="$release" '$2 == r || $3 == r { print $1; exit }')
[ -n "$mirror" ] || { say "apt has no mirror for $release: check /etc/apt/sources.list"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# Documentation, translations and byte code would double the size, and sandboxes do not need them.
say "installing $release from $mirror"
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
cat >"$root/etc/dpkg/dpkg.cfg.d/small" <<'END'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/lintian/*
force-unsafe-io
END
mkdir -p "${DOCKER_IMAGE_CACHE:=$work/cache}"
cp -r "$root" "$work/fresh"
for pause in 5 20 60 none; do # mirrors sometimes fail
	debootstrap --variant=minbase --cache-dir="$(realpath "$DOCKER_IMAGE_CACHE")" --include="$packages" \
		"$release" "$root" "$mirror" >"$work/log" 2>&1 && break
	tail -20 "$work/log" >&2
	[ $pause != none ] || exit 1
	sleep $pause
	rm -rf "$root"
	cp -r "$work/fresh" "$root"
done
ln -sf python3 "$root/usr/bin/python"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/usr/share/doc "$root"/usr/share/man \
	"$root"/usr/share/info "$root"/usr/share/locale "$root"/usr/share/zoneinfo/right
chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash user

tar -C "$root" --numeric-owner --exclude=./dev -c . |
	docker import --change 'CMD ["/bin/bash"]' --change 'ENV LANG=C.UTF-8' - "$name" >/dev/null
say "built $name ($(docker image inspect --format '{{.Size}}' "$name" | awk '{ printf "%.0f MB", $1 / 1e6 }'))"
