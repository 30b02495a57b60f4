#!/usr/bin/env bash
# Builds the image from Dockerfile and runs one task in it. Needs bin/tracesmith, Docker and
# tracesmith-base:latest; with-docker.sh provides the last two.
set -euo pipefail
cd "$(dirname "$0")/.."

image=tracesmith-check:$$
summary=$(mktemp)
trap 'rm -f "$summary"; docker image rm "$image" >/dev/null 2>&1 || true' EXIT
docker build --quiet --network none --tag "$image" . >/dev/null
docker run --rm --network none "$image" --version
docker run --rm --network none --security-opt seccomp=unconfined --security-opt systempaths=unconfined "$image" run -c quickstart -p 'tasks.ids=[stockroom]' --json >"$summary"
grep -q '"resolved_gold_used": 1' "$summary" || { echo "the task was not resolved in the image:" >&2; cat "$summary" >&2; exit 1; }
echo "the image runs a task"
