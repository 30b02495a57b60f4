#!/usr/bin/env bash
# Checks what must hold before a change is merged: formatting, vet, static analysis, a
# tidy module, and a release of at most 100 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "run gofmt -w on these files:"; echo "$unformatted"; exit 1; }
go vet ./...
GOBIN=$PWD/out/tools scripts/again.sh go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
out/tools/staticcheck ./... || { echo "staticcheck found the problems above"; exit 1; }
# Only failed downloads (tidy also needs the modules that tests of libraries import) are
# retried. A difference is a result, and the next line reports it.
scripts/again.sh bash -c 'diff=$(go mod tidy -diff) || [ -n "$diff" ]'
go mod tidy -diff
CGO_ENABLED=0 go build -o /dev/null ./cmd/...
make --no-print-directory build
size=$(stat -c %s bin/tracesmith)
[ "$size" -le 100000000 ] || { echo "bin/tracesmith has $size bytes, at most 100,000,000: see docs/decisions/binary-size.md"; exit 1; }
