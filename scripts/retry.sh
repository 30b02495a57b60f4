#!/usr/bin/env bash
# Runs a command that downloads something, and retries it up to four times, because
# registries sometimes fail.
#
# usage: retry.sh COMMAND ARGS...
for pause in 3 10 30 60; do
  "$@" && exit
  echo "retrying in $pause s: $*" >&2
  sleep "$pause"
done
exec "$@"
