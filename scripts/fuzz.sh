#!/usr/bin/env bash
# Runs every fuzz target on its seeds and then for the given time (default 10s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -c6- | sort -u); do
    echo "fuzz $dir $target"
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1s >/tmp/fuzz.$$ 2>&1 || { cat /tmp/fuzz.$$; exit 1; }
  done
done
