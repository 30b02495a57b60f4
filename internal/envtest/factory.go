package envtest

import (
	"os"
	"testing"
)

// Factory leaves a test out unless TRACESMITH_TEST_FACTORY is set: those of the
// task check and of the bug factory run a repository's tests hundreds of times.
func Factory(t *testing.T) {
	t.Helper()
	if os.Getenv("TRACESMITH_TEST_FACTORY") == "" {
		t.Skip("TRACESMITH_TEST_FACTORY=1 runs this (make factory)")
	}
}
