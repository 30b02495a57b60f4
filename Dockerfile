# The program with what bubblewrap sandboxes need: bwrap, Python, pytest, git.
#
#   make build && scripts/docker-image.sh && docker build -t tracesmith .
#   docker run --rm --privileged -v "$PWD:/work" tracesmith run -c quickstart
#
# --privileged lets bubblewrap create namespaces. Sandboxes of kind docker and kubernetes do
# not need it: give the container a Docker socket, or a service account.
ARG BASE=tracesmith-base:latest
FROM ${BASE}
COPY bin/tracesmith /usr/local/bin/tracesmith
WORKDIR /work
ENTRYPOINT ["tracesmith"]
