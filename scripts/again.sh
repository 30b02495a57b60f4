#!/usr/bin/env bash
# Runs a command that fetches something, up to five times: registries have hiccups.
#
# usage: again.sh COMMAND ARGS...
for pause in 3 10 30 60; do
  "$@" && exit
  echo "in $pause s once more: $*" >&2
  sleep "$pause"
done
exec "$@"
