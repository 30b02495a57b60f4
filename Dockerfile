# An image with tracesmith and the programs that bubblewrap sandboxes need: bwrap, Python,
# pytest and git.
#
#   make build && scripts/docker-image.sh && docker build -t tracesmith .
#   docker run --rm --security-opt seccomp=unconfined --security-opt systempaths=unconfined \
#     -v "$PWD:/work" tracesmith run -c quickstart
#
# The options let bubblewrap create namespaces. On hosts with AppArmor, add --security-opt
# apparmor=unconfined. Sandboxes of kind docker and kubernetes do not need them: give the
# container a Docker socket, or a service account.
ARG BASE=tracesmith-base:latest
FROM ${BASE}
COPY bin/tracesmith /usr/local/bin/tracesmith
WORKDIR /work
ENTRYPOINT ["tracesmith"]
