package drivers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// measure reports the median and the 99th percentile of what fn returns.
func measure(b *testing.B, fn func() time.Duration) {
	b.Helper()
	var all []time.Duration
	for b.Loop() {
		all = append(all, fn())
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkRun measures the overhead of a command: its duration minus the program's own.
func BenchmarkRun(b *testing.B) {
	for _, kind := range kinds(b) {
		b.Run(kind, func(b *testing.B) {
			s := envtest.Sandbox(b, kind, env.SandboxSpec{})
			measure(b, func() time.Duration {
				start := time.Now()
				r, err := s.Run(b.Context(), env.Command{Args: []string{"true"}})
				if err != nil {
					b.Fatal(err)
				}
				return time.Since(start) - r.Wall
			})
		})
	}
}

// BenchmarkTerminal measures the round trip of one line through cat on a pseudoterminal.
func BenchmarkTerminal(b *testing.B) {
	for _, kind := range kinds(b) {
		b.Run(kind, func(b *testing.B) {
			term, err := envtest.Sandbox(b, kind, env.SandboxSpec{}).Open(b.Context(), env.TerminalSpec{Args: []string{"cat"}, PTY: true})
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() time.Duration {
				start := time.Now()
				if err := term.Write(b.Context(), []byte("line\n")); err != nil {
					b.Fatal(err)
				}
				if p, err := term.Read(b.Context(), time.Second); err != nil || string(p) != "line\n" {
					b.Fatalf("%q, %v", p, err)
				}
				return time.Since(start)
			})
		})
	}
}

// BenchmarkStart measures a cold start of a sandbox, until its guest answers.
func BenchmarkStart(b *testing.B) {
	for _, kind := range kinds(b) {
		b.Run(kind, func(b *testing.B) {
			d := envtest.Driver(b, kind)
			if kind != "docker" { // the first start also queries the Python interpreter
				_ = envtest.Sandbox(b, kind, env.SandboxSpec{}).Close(b.Context())
			}
			measure(b, func() time.Duration {
				start := time.Now()
				s, err := d.Start(b.Context(), env.SandboxSpec{})
				if err != nil {
					b.Fatal(err)
				}
				took := time.Since(start)
				if err := s.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				return took
			})
		})
	}
}
