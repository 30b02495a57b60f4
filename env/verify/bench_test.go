package verify

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/schemas"
)

// BenchmarkTests compares running the tests in the agent's sandbox (eval) and a verdict with running the
// same command there without the verifier. The metrics are ratios of medians.
func BenchmarkTests(b *testing.B) {
	v, base := verifier(b), fixture(b)
	t := task(base, pytestEntry, pytestSpec)
	patch, sha := patchTo(b, v, base, honest(b))
	sb := envtest.Sandbox(b, "bubblewrap", env.SandboxSpec{Label: "bench", Workdir: schemas.DefaultWorkdir})
	var tree bytes.Buffer
	if err := honest(b).WriteTar(&tree); err != nil {
		b.Fatal(err)
	}
	if err := sb.TarIn(b.Context(), schemas.DefaultWorkdir, &tree); err != nil {
		b.Fatal(err)
	}
	kinds := []func() error{
		func() error {
			_, err := sb.Run(b.Context(), env.Command{Args: []string{"bash", "-c", pytestEntry}, Dir: schemas.DefaultWorkdir, MaxOutput: maxOutput, Timeout: time.Minute})
			return err
		},
		func() error { _, err := Eval(b.Context(), sb, t, 0); return err },
		func() error { _, err := v.Verify(b.Context(), t, base, patch, sha); return err },
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, run := range kinds {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	median := func(i int) float64 { return took[i][len(took[i])/2].Seconds() }
	b.ReportMetric(1000*median(0), "ms/bare")
	b.ReportMetric(median(1)/median(0), "eval-times")
	b.ReportMetric(median(2)/median(0), "verdict-times")
}
