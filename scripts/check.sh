#!/usr/bin/env bash
# Runs the checks that a change must pass before it is merged: formatting, vet, static
# analysis, a tidy go.mod, and a binary of at most 100 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "run gofmt -w on these files:"; echo "$unformatted"; exit 1; }
go vet ./...
GOBIN=$PWD/out/tools scripts/retry.sh go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
out/tools/staticcheck ./... || { echo "staticcheck found the problems above"; exit 1; }
# Retry only failed downloads, because tidy also needs the modules that tests of libraries
# import. If go.mod is not tidy, the next command reports the difference.
scripts/retry.sh bash -c 'diff=$(go mod tidy -diff) || [ -n "$diff" ]'
go mod tidy -diff
make --no-print-directory build
size=$(stat -c %s bin/tracesmith)
[ "$size" -le 100000000 ] || { echo "bin/tracesmith has $size bytes, at most 100,000,000: see docs/decisions/binary-size.md"; exit 1; }
