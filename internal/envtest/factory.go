package envtest

import (
	"os"
	"testing"
)

// Factory skips a test of the task check or the bug factory unless
// TRACESMITH_TEST_FACTORY is set, because these run a repository's tests hundreds of
// times.
func Factory(t *testing.T) {
	t.Helper()
	if os.Getenv("TRACESMITH_TEST_FACTORY") == "" {
		t.Skip("TRACESMITH_TEST_FACTORY=1 runs this (make factory)")
	}
}
