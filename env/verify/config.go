package verify

import (
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// Config of a Verifier.
type Config struct {
	Driver env.Driver
	// Spec describes every sandbox. Workdir, Image and Python come from the task if Spec does
	// not set them.
	Spec    env.SandboxSpec
	Store   *workspace.Store
	Timeout time.Duration // of one run of the tests; 0 = DefaultTimeout
}
