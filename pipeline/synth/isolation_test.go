package synth

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

var candidates = flag.Int("candidates", 6, "candidates that TestFactoryVerdictsDependOnTheCandidateAlone judges, each three times")

// A run does not see anything that the tests of an earlier run left behind.
func TestRunsAreIsolated(t *testing.T) {
	t.Parallel()
	b := benchOf(t, healthy(t, "littering", "python -m pytest -q", envtest.Littering(2)))
	buggy := map[string]string{"sums.py": strings.ReplaceAll(envtest.Littering(2)["sums.py"], "return x - y", "return x + y")}
	for i, want := range []string{"passed", "failed", "passed"} {
		q := request{Timeout: 300, Describe: 2}
		if want == "failed" {
			q.Files = buggy
		}
		got, err := b.run(t.Context(), firstSeed, q)
		if err != nil {
			t.Fatal(err)
		}
		if !got.finished || len(got.tests) != 2 || got.tests["tests/test_sums.py::test_f0"] != want || got.tests["tests/test_sums.py::test_f1"] != want {
			t.Fatalf("run %d: %v\n%s", i+1, got.tests, got.Log)
		}
	}
}

// surveyed surveys the first repository of a configuration.
func surveyed(t *testing.T, cfg Config) (*factory, *repoState) {
	t.Helper()
	journal, err := openJournal(cfg.Out, cfg.settings())
	if err != nil {
		t.Fatal(err)
	}
	st := &factory{cfg: cfg, journal: journal}
	s := &repoState{repo: cfg.Repos[0], seed: cfg.Seed, trials: map[string]*Trial{}}
	surveyor := &worker{factory: st}
	defer surveyor.leave(t.Context())
	if err := s.begin(t.Context(), surveyor); err != nil {
		t.Fatal(err)
	}
	for !s.surveyed {
		if err := st.advance(s); err != nil {
			t.Fatal(err)
		}
		for ; !s.surveyed && len(s.pending) > 0; s.pending = s.pending[1:] {
			if err := s.pending[0].do(t.Context(), surveyor); err != nil {
				t.Fatal(err)
			}
		}
	}
	return st, s
}

// A result depends only on the candidate: it is the same after other candidates on the same worker,
// in another order next to three other workers, and on a bench of its own.
func TestFactoryVerdictsDependOnTheCandidateAlone(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg, err := configOf(t, t.TempDir(), healthy(t, "littering", "python -m pytest -q", envtest.Littering(max(5, *candidates/12)))).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Candidates, cfg.ReleaseRuns = *candidates, 2
	st, s := surveyed(t, cfg)
	if s.refused != "" || len(s.drawn) != *candidates {
		t.Fatalf("%d candidates, %q", len(s.drawn), s.refused)
	}

	judge := func(w *worker, c candidate) (*Trial, error) {
		if err := w.enter(t.Context(), s); err != nil {
			return nil, err
		}
		trial, err := w.judge(t.Context(), s, c)
		if err == nil {
			trial.Seconds, trial.CPU = 0, 0
		}
		return trial, err
	}
	// judgeAll judges all candidates of a list with some workers.
	judgeAll := func(workers int, list []candidate) map[string]*Trial {
		var group errgroup.Group
		group.SetLimit(4)
		trials := make([]*Trial, len(list))
		for first := range workers {
			group.Go(func() error {
				w := &worker{factory: st}
				defer w.leave(t.Context())
				for i := first; i < len(list); i += workers {
					var err error
					if trials[i], err = judge(w, list[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		out := map[string]*Trial{}
		for i, trial := range trials {
			out[list[i].Key] = trial
		}
		return out
	}
	want := judgeAll(1, s.drawn)
	outcomes := map[Outcome]int{}
	for _, trial := range want {
		outcomes[trial.Outcome]++
	}
	t.Logf("%d candidates: %v", len(want), outcomes)
	if outcomes[Valid] == 0 || outcomes[Flaky] > 0 {
		t.Errorf("the outcomes are %v", outcomes)
	}
	reversed := slices.Clone(s.drawn)
	slices.Reverse(reversed)
	if diff := cmp.Diff(want, judgeAll(4, reversed)); diff != "" {
		t.Errorf("in another order, with four workers: %s", diff)
	}
	if diff := cmp.Diff(want, judgeAll(len(reversed), reversed)); diff != "" {
		t.Errorf("each on its own bench: %s", diff)
	}
}
