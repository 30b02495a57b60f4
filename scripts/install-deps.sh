#!/usr/bin/env bash
# Installs the system packages that tracesmith needs, if any of them is missing. If it
# lacks the rights to do so, it prints the command to run and fails. For test suites that
# need more, EXTRA="name ..." adds packages, and EXTRA_TOOLS="name ..." adds the commands
# that show whether they are installed.
set -euo pipefail

missing_tools=()
for tool in bwrap git /usr/bin/python3; do
  command -v "$tool" >/dev/null 2>&1 || missing_tools+=("$tool")
done
/usr/bin/python3 -c 'import pytest' >/dev/null 2>&1 || missing_tools+=(pytest)
for tool in ${EXTRA_TOOLS:-}; do
  command -v "$tool" >/dev/null 2>&1 || missing_tools+=("$tool")
done
if [ ${#missing_tools[@]} -eq 0 ]; then
  exit 0
fi

if command -v apt-get >/dev/null; then
  packages=(bubblewrap git python3 python3-pytest ${EXTRA:-})
  update=(apt-get update -qq)
  install=(apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "${packages[@]}")
elif command -v dnf >/dev/null; then
  packages=(bubblewrap git python3 python3-pytest ${EXTRA:-})
  update=(true)
  install=(dnf install -y -q "${packages[@]}")
elif command -v pacman >/dev/null; then
  packages=(bubblewrap git python python-pytest ${EXTRA:-})
  update=(true)
  install=(pacman -S --needed --noconfirm "${packages[@]}")
elif command -v apk >/dev/null; then
  packages=(bubblewrap git python3 py3-pytest bash ${EXTRA:-})
  update=(true)
  install=(apk add -q "${packages[@]}")
else
  echo "tracesmith needs bubblewrap, git, python3 and pytest; install them with your package manager." >&2
  exit 2
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then
    as_root=(sudo)
  else
    echo "missing: ${missing_tools[*]}. Run this once, then try again:" >&2
    echo "  sudo ${install[*]}" >&2
    exit 2
  fi
fi
echo "installing system packages: ${packages[*]} (missing: ${missing_tools[*]})" >&2
export DEBIAN_FRONTEND=noninteractive
fetch() { "${as_root[@]}" "${update[@]}" >/dev/null && "${as_root[@]}" "${install[@]}" >/dev/null; }
for pause in 3 10 30 60; do # mirrors sometimes fail, and another process may be using apt
  fetch && exit
  sleep "$pause"
done
fetch
