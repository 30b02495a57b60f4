package chaos

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// A plan depends on its seed, has each kind of fault in turn, and all faults occur within the
// batch.
func TestPlansDependOnTheirSeedOnly(t *testing.T) {
	p := newPlan(7, Kinds(), 32, 40)
	if again := newPlan(7, Kinds(), 32, 40); !reflect.DeepEqual(p, again) {
		t.Error("the same seed gave another plan")
	}
	if other := newPlan(8, Kinds(), 32, 40); reflect.DeepEqual(p.process, other.process) {
		t.Error("another seed gave the same plan")
	}
	total := 0
	for _, k := range Kinds() {
		if n := p.count[k]; n < 2 || n > 3 {
			t.Errorf("%d faults of kind %s", n, k)
		}
		total += p.count[k]
	}
	if total != 32 || len(p.process)+len(p.server)+len(p.store) != 32 {
		t.Errorf("%d faults", total)
	}
	for _, f := range p.process {
		if f.At < 1 || f.At > 40*len(turns) {
			t.Errorf("%+v is beyond the batch", f)
		}
	}
	seen := map[int]bool{}
	for _, f := range p.store {
		if f.At < 1 || f.At > 40 || seen[f.At] {
			t.Errorf("%+v", f)
		}
		seen[f.At] = true
	}
	if _, err := ParseKinds([]string{"kill", "quake"}, Kinds()); err == nil {
		t.Error("an unknown fault is taken")
	}
}

// Any number of episodes makes a valid configuration with several tasks.
func TestBatchesMayHaveAnyNumberOfEpisodes(t *testing.T) {
	for _, episodes := range []int{2, 3, 40, 60, 997, 1000, 1001, 1009, 1200, 2000, 9973, MostEpisodes} {
		dir := t.TempDir()
		file, err := Config{Episodes: episodes, Workers: 4, Sandbox: "bubblewrap"}.lay(dir, "http://127.0.0.1:1/v1", "")
		if err != nil {
			t.Fatal(err)
		}
		src, err := configs.ReadSource(file)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := configs.Load(configs.Input{Sources: []configs.Source{src}})
		if err != nil {
			t.Errorf("%d episodes: %v", episodes, err)
			continue
		}
		tasks, err := taskfile.Read(t.Context(), filepath.Join(dir, "tasks.jsonl"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(tasks); n < 2 || n*cfg.Run.Attempts != episodes {
			t.Errorf("%d episodes: %d tasks, %d attempts of each", episodes, n, cfg.Run.Attempts)
		}
		if _, err := tasks[len(tasks)-1].Tree(); err != nil {
			t.Error(err)
		}
	}
}

// A process of a large batch may live long if it keeps calling the model.
func TestOnlyProcessesThatCallNoModelCountAsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l singleProcess
		var hung atomic.Bool
		l.begin(nil, func() { hung.Store(true) })
		for range 5 {
			time.Sleep(silence - time.Second)
			l.asked()
		}
		if synctest.Wait(); hung.Load() {
			t.Error("who asks is taken for hung")
		}
		time.Sleep(silence + time.Second)
		if synctest.Wait(); !hung.Load() {
			t.Error("who is silent is not taken for hung")
		}
		l.end()
		l.asked() // a question that was still being read
	})
}

// The message and the remedy of a failed process are found in its standard error.
func TestFailureMessagesAreReadFromStandardError(t *testing.T) {
	for errs, want := range map[string][2]string{
		"":                           {"it did not say why", ""},
		"panic: no\n\ngoroutine 1\n": {"panic: no\n\ngoroutine 1", ""},
		"warning: tracesmith: odd\ntracesmith: bad field\n":                                                               {"bad field", ""},
		"tracesmith: an old one\n       try: this\ntracesmith: bad field\n            and another\n       try: mend it\n": {"bad field\nand another", "mend it"},
	} {
		if text, try := errorMessage(errs); text != want[0] || try != want[1] {
			t.Errorf("%q says %q, try %q", errs, text, try)
		}
	}
}

// The coordinator of a fleet also creates objects, and can be killed in one.
func TestTornObjectsKillCoordinatorsToo(t *testing.T) {
	for _, r := range []role{aCoordinator, aWorker} {
		f := &clusterRun{t: &trial{}, ctx: t.Context(), done: make(chan error, 1), cancelBatch: func() {}}
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if next := f.ended(&member{role: r, name: "it", errs: &bytes.Buffer{}}, cmd, false); !next || f.torn != 1 || len(f.t.report.Breaches) > 0 {
			t.Errorf("%s: started again %v, %d torn, %v", r, next, f.torn, f.t.report.Breaches)
		}
	}
}

// kept is a store in memory.
type kept struct {
	sinks.Store
	objects map[string]string
}

func (k *kept) Create(_ context.Context, key string, body []byte) error {
	if _, ok := k.objects[key]; ok {
		return sinks.ErrExists
	}
	k.objects[key] = string(body)
	return nil
}

// Of two faults of the model server on one request, only one would strike.
func TestEachAnswerHasAtMostOneFault(t *testing.T) {
	for seed := range uint64(200) {
		struck := map[int]string{}
		for _, f := range newPlan(seed, Kinds(), 220, 1000).server {
			for _, n := range f.On {
				if other := struck[n]; other != "" {
					t.Fatalf("seed %d: request %d is struck by %s and %s", seed, n, other, f.Kind)
				}
				struck[n] = f.Kind
			}
		}
	}
}

// The store's faults strike counted creations of all processes.
func TestFaultyStoreCountsOverProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store.json")
	if err := writeJSON(file, storePlan{Faults: []storeFault{{StoreError, 2}, {StoreLost, 3}}}); err != nil {
		t.Fatal(err)
	}
	inner := &kept{objects: map[string]string{}}
	create := func(key string) error { return Faulty(inner, file).Create(t.Context(), key, []byte(key)) }
	if err := create("a"); err != nil {
		t.Error(err)
	}
	if err := create("b"); err == nil || inner.objects["b"] != "" {
		t.Errorf("refused: %v", err)
	}
	if err := create("b"); err == nil || inner.objects["b"] == "" {
		t.Errorf("lost: %v", err)
	}
	if err := create("b"); !errors.Is(err, sinks.ErrExists) {
		t.Errorf("after the lost answer: %v", err)
	}
}

// Each broken promise is found.
func TestBrokenPromisesAreFound(t *testing.T) {
	dir := t.TempDir()
	staged := filepath.Join(dir, "run", "staging", "r")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr := &trial{cfg: Config{Dir: dir, Workers: 1, Guest: "no such", Open: func(ctx context.Context, place string) (sinks.Store, error) {
		return stores.Open(ctx, place, stores.S3Config{})
	}}, run: filepath.Join(dir, "run"), report: Report{struck: map[Kind]int{}}}
	known := map[string]string{}
	write(filepath.Join(dir, "run", "run.json"), "{}")
	write(filepath.Join(staged, "a"), "one")
	write(filepath.Join(staged, "b"), "two")
	for range 2 {
		if err := tr.unchanged(t.Context(), known); err != nil || len(tr.report.Breaches) > 0 {
			t.Fatal(err, tr.report.Breaches)
		}
	}
	write(filepath.Join(staged, "a"), "three")
	if err := os.Remove(filepath.Join(staged, "b")); err != nil {
		t.Fatal(err)
	}
	if err := tr.unchanged(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "run", ".tracesmith-tmp", "half"), "")
	write(filepath.Join(dir, "run", "summary.json.tmp"), "")
	write(filepath.Join(dir, "tmp", "tracesmith-bwrap-1", "owner"), "")
	if err := tr.leftBehind(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.server = &server{Handler: mock.NewHandler(mock.Script{}), asked: 5}
	tr.report.Calls = Calls{Made: 4, Answered: 4, Failed: 0, Lost: 1}
	tr.account()
	var names []string
	for _, b := range tr.report.Breaches {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	want := []string{"changed", "left_file", "left_sandbox", "left_upload", "lost", "lost_calls", "unaccounted", "unaccounted", "unaccounted", "unkept"}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}

	tr.report.Breaches, tr.report.struck = nil, map[Kind]int{Disk: 4} // each may lose a reply of the one worker
	tr.account()
	if slices.ContainsFunc(tr.report.Breaches, func(b Breach) bool { return b.Name == "unkept" }) {
		t.Errorf("replies without room on the disk: %v", tr.report.Breaches)
	}
}

// A worker that is interrupted before it has found the cluster ends at once; one that
// serves must drain.
func TestOnlyAStartingWorkerIsInterrupted(t *testing.T) {
	for errs, want := range map[string]bool{
		"stopping: closing sandboxes (interrupt again to stop at once)\n":                        true,
		"stopping: running episodes finish, no new ones start (interrupt again to stop at once)": false,
		"": false,
	} {
		for _, m := range []*member{{role: aWorker, leaving: true}, {role: aWorker, ended: map[Kind]bool{Drain: true}}} {
			if m.errs = bytes.NewBufferString(errs); m.exitIsExplained(130) != want {
				t.Errorf("after %q: %v", errs, !want)
			}
		}
		if m := (&member{role: aWorker, errs: bytes.NewBufferString(errs)}); m.exitIsExplained(130) {
			t.Errorf("nobody stopped it: %q", errs)
		}
	}
}
