// Package suite turns on tests that need more than `make test` gives them, such as a Docker
// daemon or an hour. One environment variable turns on each suite, and the names of its tests
// begin alike, so that a make target runs these tests and no others.
package suite

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Suite is a group of tests that an environment variable turns on.
type Suite struct {
	Variable string
	Target   string   // target of the Makefile that runs it
	Prefixes []string // the names of its tests begin with "Test" and one of these
}

// The suites. Tests whose names begin with TestEach or TestHostile also run without their suite,
// but then only on bubblewrap, with this machine's Pythons, or with few of the attacks.
var (
	Agents     = Suite{"TRACESMITH_TEST_AGENTS", "agents", []string{"Agents"}}
	Browser    = Suite{"TRACESMITH_TEST_BROWSER", "browser", []string{"Browser"}}
	Docker     = Suite{"TRACESMITH_TEST_DOCKER", "docker", []string{"Docker", "EachDriver"}}
	Factory    = Suite{"TRACESMITH_TEST_FACTORY", "factory", []string{"Factory"}}
	Hostile    = Suite{"TRACESMITH_TEST_HOSTILE", "sandboxes", []string{"Hostile"}}
	Soak       = Suite{"TRACESMITH_TEST_SOAK", "soak", []string{"Soak"}}
	Cluster    = Suite{"TRACESMITH_TEST_CLUSTER", "cluster", []string{"Cluster"}}
	Pythons    = Suite{"TRACESMITH_TEST_PYTHONS", "pythons", []string{"EachPython"}}
	Versitygw  = Suite{"TRACESMITH_TEST_VERSITYGW", "s3", []string{"S3"}}
	Minio      = Suite{"TRACESMITH_TEST_MINIO", "s3-second", []string{"S3"}}
	ATIF       = Suite{"TRACESMITH_TEST_ATIF", "interop", []string{"ATIF"}}
	Kubernetes = Suite{"TRACESMITH_TEST_KUBECONFIG", "test-k8s", []string{"KubernetesCluster"}}
)

// All returns all suites.
func All() []Suite {
	return []Suite{Agents, Browser, Docker, Factory, Hostile, Soak, Cluster, Pythons, Versitygw, Minio, ATIF, Kubernetes}
}

// WithScripts returns the suites that also have scripts of cmd/tracesmith, whose names begin with the target. No other
// target runs them.
func WithScripts() []Suite { return []Suite{Agents, Docker, Factory, Soak} }

// Require skips a test of the suite unless the suite is on, and returns the variable's value.
func (s Suite) Require(t testing.TB) string {
	t.Helper()
	value := s.Value(t)
	if value == "" {
		t.Skipf("NOT RUN: make %s runs it (%s)", s.Target, s.Variable)
	}
	return value
}

// Value returns the variable's value, or "" if the suite is off. It fails a test whose name
// does not belong to the suite, because no target would run that test with the suite on.
func (s Suite) Value(t testing.TB) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if strings.HasPrefix(name, "Test") && !s.has(name) {
		t.Fatalf("%s depends on %s: begin its name with Test%s, or make %s leaves it out", name, s.Variable, s.Prefixes[0], s.Target)
	}
	return s.Get()
}

func (s Suite) has(test string) bool {
	return slices.ContainsFunc(s.Prefixes, func(prefix string) bool { return strings.HasPrefix(test, "Test"+prefix) })
}

// Get is like Value for code without a testing.TB: the runner of scripts, and test binaries that a test starts.
func (s Suite) Get() string { return os.Getenv(s.Variable) }

// Pattern returns the -run pattern for the suite's tests.
func (s Suite) Pattern() string {
	if len(s.Prefixes) == 1 {
		return "^Test" + s.Prefixes[0]
	}
	return "^Test(" + strings.Join(s.Prefixes, "|") + ")"
}
