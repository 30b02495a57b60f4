package pdb

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

const loopProgram = `
def double(x):
    return x + x


def inline(n):
    total = 0
    for i in range(n):
        total += i
    return total


def calling(n):
    total = 0
    for i in range(n):
        total += double(i)
    return total


import sys, time
start = time.perf_counter()
if sys.argv[1] == "module":
    total = 0
    for i in range(300_000):
        total += i
else:
    {"inline": inline, "calling": calling}[sys.argv[1]](300_000)
print("seconds %.4f." % (time.perf_counter() - start))
`

// BenchmarkLoop compares a loop of 300,000 iterations in a file with a breakpoint to the same loop under the
// pdb of the standard library. The loop of the module is in the same code object as the breakpoint. The metric is the ratio of the medians of both times. TRACESMITH_TEST_PYTHON
// names another interpreter.
func BenchmarkLoop(b *testing.B) {
	py := os.Getenv("TRACESMITH_TEST_PYTHON")
	python := "python3"
	if py != "" {
		python = py
	}
	for _, kind := range []string{"inline", "calling", "module"} {
		b.Run(kind, func(b *testing.B) {
			d := openIn(b, "bubblewrap", py, Config{})
			d.write("loop.py", loopProgram)
			line := strings.Count(loopProgram[:strings.Index(loopProgram, "print(")], "\n") + 1
			var own, standard []float64
			for b.Loop() {
				r, err := d.Command(b.Context(), env.DebuggerCommand{Text: fmt.Sprintf("b loop.py:%d", line), Entrypoint: python + " loop.py " + kind})
				if err != nil || r.IsError {
					b.Fatal(r, err)
				}
				d.do("c")
				own = append(own, printedSeconds(b, d.do("c").Text))
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				out, err := d.sb.Run(ctx, env.Command{Dir: workdir, MaxOutput: 1 << 20,
					Args: []string{python, "-m", "pdb", "-c", fmt.Sprintf("b loop.py:%d", line), "-c", "c", "-c", "c", "-c", "q", "loop.py", kind}})
				cancel()
				if err != nil {
					b.Fatal(err)
				}
				standard = append(standard, printedSeconds(b, string(out.Output)))
			}
			slices.Sort(own)
			slices.Sort(standard)
			b.ReportMetric(own[len(own)/2]/standard[len(standard)/2], "pdb-times")
			b.ReportMetric(1000*own[len(own)/2], "ms/loop")
		})
	}
}

func printedSeconds(b testing.TB, text string) float64 {
	b.Helper()
	_, rest, _ := strings.Cut(text, "seconds ")
	var s float64
	if _, err := fmt.Sscanf(rest, "%f", &s); err != nil {
		b.Fatalf("%v in %q", err, text)
	}
	return s
}
