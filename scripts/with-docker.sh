#!/usr/bin/env bash
# Runs a command that needs a Docker daemon and the base image: installs Docker, starts
# the daemon and builds the image if they are missing, and stops the daemon it started.
set -euo pipefail
cd "$(dirname "$0")/.."

EXTRA="docker.io debootstrap busybox-static" EXTRA_TOOLS="dockerd debootstrap busybox" scripts/install-deps.sh
started=
if ! docker version >/dev/null 2>&1; then
  log=$(mktemp)
  start() { dockerd >"$log" 2>&1 & started=$!; }
  starts=1
  start
  trap 'kill "$started" 2>/dev/null; wait "$started" 2>/dev/null || true' EXIT
  for _ in $(seq 1500); do # five minutes, because a busy machine is slow
    docker version >/dev/null 2>&1 && break
    if ! kill -0 "$started" 2>/dev/null; then # dockerd waits only 15 seconds for containerd
      echo "dockerd ended:" >&2
      tail -5 "$log" >&2
      [ $((starts++)) -lt 5 ] || exit 1
      start
    fi
    sleep 0.2
  done
  docker version >/dev/null
fi
# Older images lack bubblewrap, so they are rebuilt.
docker run --rm --network none tracesmith-base:latest sh -c "command -v bwrap" >/dev/null 2>&1 || scripts/docker-image.sh
# The kernel gives all containers together as much processor time as each other session of the
# machine. While other tests run, that is too little for the tests' time limits.
if [ -n "$started" ]; then
  for shares in /sys/fs/cgroup/cpu/docker/cpu.shares /sys/fs/cgroup/cpu,cpuacct/docker/cpu.shares; do
    [ ! -w "$shares" ] || echo 8192 >"$shares"
  done
fi
"$@"
