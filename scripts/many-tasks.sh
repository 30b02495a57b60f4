#!/usr/bin/env bash
# Makes thousands of tasks from popular packages: downloads the source distributions that
# many-tasks.txt lists, finds out how their tests run, and injects bugs. The tasks are in
# out/many-tasks/bugs/tasks.jsonl. To resume, repeat the command.
#
# usage: many-tasks.sh [TASKS] [FLAGS OF tasks synth...]
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/many-tasks
python3 scripts/sdists.py scripts/many-tasks.txt "$out/packages" || echo "going on without these packages" >&2
exec bin/tracesmith tasks synth "$out/packages" --stop-at "${1:-2000}" -o "$out/bugs" "${@:2}"
