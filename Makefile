# The main commands are `make demo` and `make test`. Both install missing packages.
SHELL := /bin/bash
export CGO_ENABLED := 0
# scripts/find-go.sh installs Go there if no Go on the PATH is new enough.
export PATH := $(CURDIR)/.tools/bin:$(PATH)

# The release is in the file VERSION. The commit is appended to distinguish data from two builds of one release.
BUILD   := $(shell git describe --always --dirty --exclude='*' 2>/dev/null)
VERSION := $(shell cat VERSION)$(BUILD:%=+%)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null)
PKG     := github.com/tracesmith/tracesmith
CLI     := $(PKG)/cmd/internal/cli
LDFLAGS := -s -w -X $(CLI).Version=$(VERSION) -X $(CLI).Commit=$(COMMIT)
# Without this tag, grpc executes a template to show traces, which makes the linker keep all methods of all types.
# All commands use it, so that they share what they compile. -trimpath lets clones in different folders share it as well.
TAGS    := grpcnotrace
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -tags=$(TAGS))
GUEST   := env/guest/bin/tracesmith-guest
PACKED  := env/guest/packed/tracesmith-guest.gz
export TRACESMITH_GUEST := $(CURDIR)/$(GUEST)

# FULL=1 runs the long form of every suite: all Python versions, all packages under the race
# detector, and tests without -short. `make full` sets it.
FULL ?=
# $(call gotest,PACKAGES,FLAGS) runs go test and lists failed and skipped tests at the
# end. Tests wait more than they compute, so at least four run at once, even on two
# processors. The target check runs go vet. GOGC lets the linker, the tests and the many short programs that they start
# collect garbage less often, which saves CPU time and costs memory.
GOTESTSUM := $(CURDIR)/out/tools/gotestsum
AT_ONCE := $(shell n=$$(nproc 2>/dev/null); echo $$((n > 4 ? n : 4)))
gotest = GOGC=400 $(GOTESTSUM) --format standard-quiet --packages='$(1)' -- -count=1 -vet=off -ldflags=-w -timeout $(if $(FULL),90m,30m) -p $(AT_ONCE) -parallel $(AT_ONCE) $(if $(FULL),,-short) $(2)

.PHONY: demo lab test sandboxes toolchain race full guest packed build install deps check pythons agents factory soak docs s3 s3-second cluster browser screenshots interop trainers docker test-k8s fuzz versitygw clean help

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

deps: ## install the system packages that are missing
	@scripts/install-deps.sh

toolchain:
	@scripts/find-go.sh

guest: toolchain ## the static helper for sandboxes; build embeds it, and tests start it
	@go build -buildvcs=false -ldflags '-s -w' -o $(GUEST) ./cmd/tracesmith-guest

# The programs embed this file. It keeps its time if it does not change, so that they need not be linked again.
packed: guest
	@gzip -9nc $(GUEST) >$(PACKED).new
	@cmp -s $(PACKED).new $(PACKED) && rm $(PACKED).new || mv $(PACKED).new $(PACKED)

build: packed ## bin/tracesmith, static
	@go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/tracesmith ./cmd/tracesmith

# This target builds nothing, because it often runs as root.
PREFIX ?= /usr/local
install: ## copy bin/tracesmith to $(DESTDIR)$(PREFIX)/bin, by default /usr/local/bin; run make build first
	@test -x bin/tracesmith || { echo "bin/tracesmith does not exist: run make build first" >&2; exit 2; }
	@install -d "$(DESTDIR)$(PREFIX)/bin"
	@install -m 755 bin/tracesmith "$(DESTDIR)$(PREFIX)/bin/tracesmith"
	@echo "installed $(DESTDIR)$(PREFIX)/bin/tracesmith"

lab: packed ## bin/tracesmith-lab: measurements, long runs, injected faults
	@go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/tracesmith-lab ./cmd/tracesmith-lab

demo: deps build ## run the quickstart profile into out/quickstart
	@bin/tracesmith run -c quickstart

$(GOTESTSUM): | toolchain
	GOBIN=$(dir $(GOTESTSUM)) CGO_ENABLED=0 scripts/retry.sh go install gotest.tools/gotestsum@v1.13.0

# The packages that take longest start first, so that none of them runs alone at the end.
LONG := ./cmd/tracesmith ./agents/policies ./env/verify ./env/pdb ./env/drivers/bubblewrap ./env/drivers/local ./pipeline ./pipeline/fleet ./tools/builtin ./pipeline/publish
# The tests of these packages wait for minutes, so make sandboxes runs them instead of make test.
APART := ./env/drivers/kubernetes ./internal/hostile
# The bug factory. Its tests start pytest hundreds of times, so make factory runs all of them.
FACTORY := ./env/mutate ./env/tasks/check ./env/trace ./pipeline/synth
# Compile everything before the tests run: programs in sandboxes have a low priority and would starve while the compiler runs.
test: deps guest $(GOTESTSUM) ## the tests that need no daemon
	@echo "make test does not run these targets, but .ci/run does: sandboxes, race, docker, s3, cluster, browser, interop, pythons, agents, factory, soak"
	@go build -buildvcs=false ./...
	all=$$(go list ./...) && rest=$$(grep -vxF "$$(printf '%s\n' $(APART:./%=$(PKG)/%) $(FACTORY:./%=$(PKG)/%))" <<<"$$all" | tr '\n' ' ') && $(call gotest,'"$(LONG) $$rest"')

sandboxes: deps guest $(GOTESTSUM) ## hostile programs in sandboxes, hostile patches, and all sandbox tests against a Kubernetes API server
	$(call gotest,$(APART))
	TRACESMITH_TEST_HOSTILE=1 $(call gotest,./env/verify,-run '^TestHostile')

# The packages whose goroutines share memory, and the guest that runs in their sandboxes.
# The skipped tests publish dozens of times, one after another.
RACED := ./pipeline ./pipeline/budget ./pipeline/engine ./pipeline/fleet ./pipeline/rundir ./pipeline/publish ./llms/middle ./llms/tape ./env/guest ./cmd/internal/viewer
ifdef FULL
RACED := ./...
endif
RACE_GUEST := $(CURDIR)/out/tools/tracesmith-guest-race
race: deps toolchain $(GOTESTSUM) ## the packages whose goroutines share memory, under the race detector, shuffled
	@EXTRA="gcc libc6-dev" EXTRA_TOOLS="gcc" scripts/install-deps.sh
	CGO_ENABLED=1 go build -race -buildvcs=false -o $(RACE_GUEST) ./cmd/tracesmith-guest
	TRACESMITH_GUEST=$(RACE_GUEST) CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(call gotest,$(RACED),-race -shuffle=on $(if $(FULL),,-skip '^TestPublishAfterKill'))

# This includes the tests that .ci/run shortens or omits.
full: ## all checks and tests in their long form: all Python versions, the race detector everywhere, 300,000 jobs, long runs with faults, a second S3 server
	$(MAKE) FULL=1 check test sandboxes demo race docker agents factory cluster pythons s3 s3-second soak browser interop

# An environment variable turns each suite on, and the names of its tests share a prefix: see internal/suite.
pythons: deps guest $(GOTESTSUM) ## tests of the debugger, the verifier and of traces on the oldest and the newest Python, because make test uses the system's; FULL=1: on every version from 3.6 to 3.14 that can be found
	list=$$(scripts/pythons.sh $(if $(FULL),,oldest newest)) && TRACESMITH_TEST_PYTHONS=$$list $(call gotest,./env/pdb ./env/verify,-run '^TestEachPython')
	list=$$(scripts/pythons.sh $(if $(FULL),,oldest 3.8 newest)) && TRACESMITH_TEST_PYTHONS=$$list $(call gotest,./env/trace,-run '^TestEachPython') # paired traces need 3.8

agents: deps guest $(GOTESTSUM) ## whole runs of every kind of agent, with misbehaving model servers and kills
	TRACESMITH_TEST_AGENTS=1 $(call gotest,./agents/policies ./cmd/tracesmith,-run '^TestAgents')
	TRACESMITH_TEST_AGENTS=1 $(call gotest,./cmd/tracesmith,-run '^TestScripts$$/^agents_')

factory: deps guest $(GOTESTSUM) ## the task check, paired traces and the bug factory
	TRACESMITH_TEST_FACTORY=1 $(call gotest,$(FACTORY))
	TRACESMITH_TEST_FACTORY=1 $(call gotest,./cmd/tracesmith,-run '^TestScripts$$/^factory_')

soak: deps guest $(GOTESTSUM) ## a run with every kind of fault, a power cut on a separate disk (needs root), and the measurements of tracesmith-lab
	TRACESMITH_TEST_SOAK=1 $(call gotest,./cmd/tracesmith,-run '^TestScripts$$/^soak_')
	TRACESMITH_TEST_SOAK=1 $(call gotest,./pipeline,-run '^TestSoak')

S3_SERVER := $(CURDIR)/out/tools/versitygw
versitygw: $(S3_SERVER)
$(S3_SERVER): | toolchain
	GOBIN=$(dir $(S3_SERVER)) scripts/retry.sh go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

s3: versitygw guest $(GOTESTSUM) ## tests against a real S3 server on loopback
	TRACESMITH_TEST_VERSITYGW=$(S3_SERVER) $(call gotest,./sinks/stores ./pipeline/publish,-run '^TestS3')
	TRACESMITH_TEST_VERSITYGW=$(S3_SERVER) $(call gotest,./cmd/tracesmith,-run '^TestScripts$$/^s3')

# An old version of a server that is no longer maintained. Its purpose is to answer
# differently from the first server.
SECOND_SERVER := $(CURDIR)/out/tools/minio
$(SECOND_SERVER): | toolchain
	GOBIN=$(dir $(SECOND_SERVER)) scripts/retry.sh go install -ldflags '-s -w' github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c

s3-second: $(SECOND_SERVER) guest $(GOTESTSUM) ## the same tests against a second, independent S3 server; not part of .ci/run
	TRACESMITH_TEST_MINIO=$(SECOND_SERVER) $(call gotest,./sinks/stores ./pipeline/publish,-run '^TestS3')
	TRACESMITH_TEST_MINIO=$(SECOND_SERVER) $(call gotest,./cmd/tracesmith,-run '^TestScripts$$/^s3')

cluster: guest $(GOTESTSUM) ## three NATS nodes and three workers, which are killed during the run; FULL=1: 300,000 jobs
	TRACESMITH_TEST_CLUSTER=1 $(call gotest,./pipeline/fleet ./pipeline/engine,-run '^TestCluster')

interop: deps build $(GOTESTSUM) ## read a small dataset and all its views with other libraries, and with the chat templates of two model families
	scripts/interop.sh $(CURDIR)/bin/tracesmith
	TRACESMITH_TEST_ATIF=$(CURDIR)/out/tools/interop/bin/python $(call gotest,./sinks/views,-run '^TestATIF')

trainers: deps toolchain ## measure again on which tokens of the fixture rows of sft-trl TRL trains (installs 5 GB; not part of .ci/run)
	scripts/trainers.sh

docker: build $(GOTESTSUM) ## tests against a real Docker daemon, with an image made of Debian packages
	scripts/with-docker.sh env TRACESMITH_TEST_DOCKER=1 sh -c "$(call gotest,./env/drivers ./env/drivers/docker ./env/workspace/setup ./internal/hostile,-run '^Test(Docker|EachDriver)') && $(call gotest,./cmd/tracesmith,-run '^Test(Scripts|Docker|EachDriver)/^docker') && scripts/check-dockerfile.sh"

browser: deps $(GOTESTSUM) ## the pages of tracesmith view in a real browser; installs Chromium if it is missing
	@EXTRA=chromium EXTRA_TOOLS=chromium scripts/install-deps.sh
	TRACESMITH_TEST_BROWSER=1 $(call gotest,./cmd/internal/viewer,-run '^TestBrowser')

screenshots: deps demo ## make the pictures in docs/images again, from the dataset of make demo
	@EXTRA=chromium EXTRA_TOOLS=chromium scripts/install-deps.sh
	TRACESMITH_TEST_BROWSER=1 go test -count=1 ./cmd/internal/viewer -run '^TestBrowserLooks$$' -place $(CURDIR)/out/quickstart/dataset -update

test-k8s: guest ## tests against the cluster of TRACESMITH_TEST_KUBECONFIG, with the image TRACESMITH_TEST_K8S_IMAGE
	@test -n "$$TRACESMITH_TEST_KUBECONFIG" || { echo "set TRACESMITH_TEST_KUBECONFIG to a kubeconfig, and TRACESMITH_TEST_K8S_IMAGE to an image with Python that its nodes can pull"; exit 2; }
	go test -count=1 -run '^TestKubernetesCluster' ./env/drivers/kubernetes

fuzz: toolchain ## a short run of every fuzz target
	scripts/fuzz.sh 10s

check: toolchain ## check formatting, vet, linters, go.mod and the size of the release
	scripts/check.sh

docs: toolchain ## generate the pages that come from the code: docs/reference and a table in docs/filter.md
	@go test ./cmd/internal/settings -count=1 -run '^TestMeanings$$' -update
	@go test ./cmd/internal/cli -count=1 -run '^(TestReferencePages|TestTaskFilePageIsComplete)$$' -update
	@go test ./pipeline/selection -count=1 -run '^TestPageListsPredicates$$' -update

clean: ## remove build output but keep runs and datasets under out/
	rm -rf bin $(GUEST) $(PACKED)
