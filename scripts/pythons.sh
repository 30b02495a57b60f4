#!/usr/bin/env bash
# Finds Python interpreters, one for each minor version from 3.6 to 3.14, and prints
# them as a list separated by colons. On Debian it downloads missing versions from
# other Debian releases: it unpacks their packages below out/pythons, where they run
# with their own C library, and installs nothing. It downloads Python 3.15 only if it
# finds fewer than five others. Interpreters without pytest get it below
# out/pythons/pytest.
#
# usage: pythons.sh [VERSION...]     only these, such as 3.8, oldest or newest
#
# If there are fewer than five, it fails and says where it looked.
set -euo pipefail
cd "$(dirname "$0")/.."
versions=(3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.14)
here=$PWD/out/pythons
declare -A found
tried=()

consider() {
  local version path
  [ -x "$1" ] || return 0
  read -r version path < <("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null </dev/null) || return 0
  [ -n "${found[$version]:-}" ] || found[$version]=$path
}

for version in "${versions[@]}"; do
  for path in $(type -aP "python$version") /usr/bin/python$version /usr/local/bin/python$version; do
    consider "$path"
  done
done
for path in /usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3 "$HOME"/.local/share/uv/python/*/bin/python3 "$here"/*/usr/bin/python3.*[0-9]; do
  consider "$path"
done

lacking() { for version in "${versions[@]}"; do [ -n "${found[$version]:-}" ] || echo "$version"; done; }

# mirror prints the Debian mirror that this machine uses.
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 -E '/debian/?$'; }

# unpack RELEASE VERSION... unpacks Python versions from a Debian release. They run with the C library of sid.
unpack() {
  local release=$1 apt=$here/apt-$1 root=$here/$1 options
  shift
  mkdir -p "$apt"/{lists/partial,cache/archives/partial} "$root"
  touch "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $release main" >"$apt/sources"
  options=(-o "Dir::Etc::sourcelist=$apt/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
    -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=
    -o Acquire::http::Timeout=30 -o Acquire::Retries=5 -o Acquire::Languages=none
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false)
  tried+=("Debian $release: $*")
  [ -n "$(ls "$apt/lists" | grep Packages)" ] || timeout 300 apt-get "${options[@]}" -qq update >/dev/null 2>&1 || return 0
  local version
  for version in "$@"; do
    rm -f "$apt"/cache/archives/*.deb
    timeout 300 apt-get "${options[@]}" -qq -y -d --no-install-recommends install "python$version" "libpython$version-stdlib" >/dev/null 2>&1 || continue
    local deb
    for deb in "$apt"/cache/archives/*.deb; do
      case ${deb##*/} in libc6_* | libc-gconv* | libc-bin_*) [ "$release" = sid ] || continue ;; esac
      dpkg-deb -x "$deb" "$root" || continue 2
    done
    rm -f "$apt"/cache/archives/*.deb
    local libs=lib/$(uname -m)-linux-gnu libc=$here/sid/usr/lib/$(uname -m)-linux-gnu
    mv "$root/usr/bin/python$version" "$root/usr/bin/python$version.bin"
    cat >"$root/usr/bin/python$version" <<END
#!/bin/sh
exec $libc/ld-linux-*.so.2 --argv0 "\$0" --library-path $root/usr/$libs:$root/$libs:$libc $root/usr/bin/python$version.bin "\$@"
END
    chmod +x "$root/usr/bin/python$version"
    timeout 60 "$root/usr/bin/python$version" -m compileall -q -j 0 -x '/(test|idlelib|tkinter|lib2to3|ensurepip|pydoc_data)/' \
      "$root/usr/lib/python$version" >/dev/null 2>&1 || true # without byte code, startup takes seconds
    consider "$root/usr/bin/python$version"
  done
}

if [ -n "$(lacking)" ] && command -v apt-get dpkg-deb >/dev/null && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] && [ -n "$(mirror)" ]; then
  unpack sid $(lacking | grep -xE '3\.1[34]' || true)
  [ -z "$(lacking | grep -x 3.9)" ] || unpack bullseye 3.9
  [ ${#found[@]} -ge 5 ] || unpack sid 3.15
fi

list=()
for version in "${versions[@]}" 3.15; do
  [ -z "${found[$version]:-}" ] || list+=("${found[$version]}")
done
[ -z "$(lacking)" ] || echo "not found: $(lacking | tr '\n' ' ')${tried:+(tried ${tried[*]})}" >&2
if [ ${#list[@]} -lt 5 ]; then
  echo "found ${#list[@]} versions of Python, but five are needed. Looked in PATH, /usr/bin, ~/.pyenv/versions, ~/.local/share/uv/python" \
    "and ${tried[*]:-no Debian packages: this is not Debian}. Install more, for example with pyenv or uv." >&2
  exit 1
fi
if [ $# -gt 0 ]; then
  found[oldest]=${list[0]} found[newest]=${list[-1]} list=()
  for version; do
    [ -z "${found[$version]:-}" ] || list+=("${found[$version]}")
  done
fi
echo "Python interpreters: ${list[*]}" >&2

# Install pytest for interpreters that lack it. After the first failure, try no others.
pip=() without=()
for version in 3.13 3.12 3.11 3.10 3.9; do
  [ ${#pip[@]} -gt 0 ] || ! "${found[$version]:-false}" -c 'import pip' 2>/dev/null || pip=("${found[$version]}" -m pip)
done
for version in "${versions[@]}"; do
  python=${found[$version]:-} to=$here/pytest/$version
  [[ -n $python && :$(IFS=:; echo "${list[*]}"): = *:$python:* ]] && [ ! -d "$to" ] && ! "$python" -c 'import pytest' 2>/dev/null || continue
  if [ ${#without[@]} -eq 0 ]; then
    own=("$python" -m pip)
    "${own[@]}" --version >/dev/null 2>&1 </dev/null || own=("${pip[@]:-false}" --python "$python")
    mkdir -p "$here/pytest" && rm -rf "$to.part"
    timeout 300 "${own[@]}" -q install --retries 10 --target "$to.part" pytest >/dev/null 2>&1 </dev/null && mv "$to.part" "$to" && continue
  fi
  without+=("$version")
done
[ ${#without[@]} -eq 0 ] || echo "these versions have no pytest, so the tests of pytest skip them: ${without[*]}" >&2

(IFS=:; echo "${list[*]}")
