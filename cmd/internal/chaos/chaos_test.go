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

// A plan depends only on its seed. It has each kind of fault about equally often, and all
// faults are within the batch.
func TestPlansDependOnTheirSeedOnly(t *testing.T) {
	p := newPlan(7, Kinds(), 32, 40)
	if same := newPlan(7, Kinds(), 32, 40); !reflect.DeepEqual(p, same) {
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
			t.Errorf("%+v is beyond the batch, or another fault strikes at the same creation", f)
		}
		seen[f.At] = true
	}
	if _, err := ParseKinds([]string{"kill", "quake"}, Kinds()); err == nil {
		t.Error("an unknown fault was accepted")
	}
}

// Any number of episodes makes a valid configuration with several tasks.
func TestBatchesCanHaveAnyNumberOfEpisodes(t *testing.T) {
	for _, episodes := range []int{2, 3, 40, 60, 997, 1000, 1001, 1009, 1200, 2000, 9973, MaxEpisodes} {
		dir := t.TempDir()
		file, err := Config{Episodes: episodes, Workers: 4, Sandbox: "bubblewrap"}.writeBatch(dir, "http://127.0.0.1:1/v1", "")
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

// A process counts as hung if it makes no model call for maxSilence, however long it lives.
func TestOnlyProcessesThatCallNoModelCountAsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p singleProcess
		var hung atomic.Bool
		p.begin(nil, func() { hung.Store(true) })
		for range 5 {
			time.Sleep(maxSilence - time.Second)
			p.requestReceived()
		}
		if synctest.Wait(); hung.Load() {
			t.Error("a process that calls the model counts as hung")
		}
		time.Sleep(maxSilence + time.Second)
		if synctest.Wait(); !hung.Load() {
			t.Error("a process that makes no model call does not count as hung")
		}
		p.end()
		p.requestReceived() // a request that is read after the end of its process
	})
}

// The message and the remedy of a failed process are found in its standard error.
func TestFailureMessagesAreReadFromStandardError(t *testing.T) {
	for stderr, want := range map[string][2]string{
		"":                           {"it did not say why", ""},
		"panic: no\n\ngoroutine 1\n": {"panic: no\n\ngoroutine 1", ""},
		"warning: tracesmith: odd\ntracesmith: bad field\n":                                                              {"bad field", ""},
		"tracesmith: an old one\n       try: this\ntracesmith: bad field\n            and another\n       try: fix it\n": {"bad field\nand another", "fix it"},
	} {
		if text, try := errorMessage(stderr); text != want[0] || try != want[1] {
			t.Errorf("%q: message %q, remedy %q", stderr, text, try)
		}
	}
}

// A process that dies of a SIGKILL which the trial did not send counts as killed by StoreTorn, which
// kills whatever process creates the object: a worker or the coordinator.
func TestUnexplainedKillsCountAsTornObjects(t *testing.T) {
	for _, r := range []role{coordinatorRole, workerRole} {
		f := &clusterRun{t: &trial{}, ctx: t.Context(), done: make(chan error, 1), cancelBatch: func() {}}
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if restart := f.processEnded(&member{role: r, name: "it", stderr: &bytes.Buffer{}}, cmd, false); !restart || f.torn != 1 || len(f.t.report.Breaches) > 0 {
			t.Errorf("%s: restarted %v, %d torn, %v", r, restart, f.torn, f.t.report.Breaches)
		}
	}
}

// memoryStore is a store in memory.
type memoryStore struct {
	sinks.Store
	objects map[string]string
}

func (m *memoryStore) Create(_ context.Context, key string, body []byte) error {
	if _, ok := m.objects[key]; ok {
		return sinks.ErrExists
	}
	m.objects[key] = string(body)
	return nil
}

// No request has two faults of the model server, because only one of them would strike.
func TestEachAnswerHasAtMostOneFault(t *testing.T) {
	for seed := range uint64(200) {
		struck := map[int]string{}
		for _, f := range newPlan(seed, Kinds(), 220, 1000).server {
			for _, n := range f.On {
				if other := struck[n]; other != "" {
					t.Fatalf("seed %d: request %d has the faults %s and %s", seed, n, other, f.Kind)
				}
				struck[n] = f.Kind
			}
		}
	}
}

// The faults of a store strike at the creations with their numbers, counted over all processes that
// share the plan.
func TestFaultyStoreCountsOverProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store.json")
	if err := writeJSON(file, storePlan{Faults: []storeFault{{StoreError, 2}, {StoreLost, 3}}}); err != nil {
		t.Fatal(err)
	}
	inner := &memoryStore{objects: map[string]string{}}
	create := func(key string) error { return FaultyStore(inner, file).Create(t.Context(), key, []byte(key)) }
	if err := create("a"); err != nil {
		t.Error(err)
	}
	if err := create("b"); err == nil || inner.objects["b"] != "" {
		t.Errorf("creation 2: error %v, stored %q; want an error and no object", err, inner.objects["b"])
	}
	if err := create("b"); err == nil || inner.objects["b"] == "" {
		t.Errorf("creation 3: error %v, stored %q; want an error and an object", err, inner.objects["b"])
	}
	if err := create("b"); !errors.Is(err, sinks.ErrExists) {
		t.Errorf("creation 4, after the lost answer: error %v, want %v", err, sinks.ErrExists)
	}
}

// The checks find each broken promise.
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
		if err := tr.checkStaged(t.Context(), known); err != nil || len(tr.report.Breaches) > 0 {
			t.Fatal(err, tr.report.Breaches)
		}
	}
	write(filepath.Join(staged, "a"), "three")                    // changed
	if err := os.Remove(filepath.Join(staged, "b")); err != nil { // lost
		t.Fatal(err)
	}
	if err := tr.checkStaged(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "run", ".tracesmith-tmp", "half"), "")     // left_upload
	write(filepath.Join(dir, "run", "summary.json.tmp"), "")            // left_file
	write(filepath.Join(dir, "tmp", "tracesmith-bwrap-1", "owner"), "") // left_sandbox
	if err := tr.checkLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The server got 5 requests and answered none. The run counts 4 calls, 4 answers and 1 lost call.
	// So the calls do not add up, and neither the requests nor the answers match (unaccounted, three
	// times). No planned episode needs the 4 answers (unkept), and no process was killed (lost_calls).
	tr.server = &server{Handler: mock.NewHandler(mock.Script{}), requests: 5}
	tr.report.Calls = Calls{Made: 4, Answered: 4, Failed: 0, Lost: 1}
	tr.checkCalls()
	var names []string
	for _, b := range tr.report.Breaches {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	want := []string{"changed", "left_file", "left_sandbox", "left_upload", "lost", "lost_calls", "unaccounted", "unaccounted", "unaccounted", "unkept"}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}

	tr.report.Breaches, tr.report.struck = nil, map[Kind]int{Disk: 4} // each full disk may lose a reply of the only worker
	tr.checkCalls()
	if slices.ContainsFunc(tr.report.Breaches, func(b Breach) bool { return b.Name == "unkept" }) {
		t.Errorf("replies that a full disk lost: %v", tr.report.Breaches)
	}
}

// Each missing or unplanned episode is reported once, for what it is.
func TestEpisodeSetsAreCompared(t *testing.T) {
	tr := &trial{}
	good, wrong, changed := episodeDigest{"resolved", "a", "1"}, episodeDigest{"unresolved", "b", "2"}, episodeDigest{"resolved", "a", "3"}
	staged := map[string]episodeDigest{"good": good, "wrong": wrong, "changed": good, "unpublished": good, "surplus": good}
	published := map[string]episodeDigest{"good": good, "wrong": wrong, "changed": changed, "unstaged": good}
	tr.compareSets([]string{"good", "wrong", "changed", "unpublished", "unstaged", "missing"}, staged, published)
	want := []Breach{
		{"wrong", "episode wrong is unresolved"},
		{"differs", "episode changed is not published as it is staged"},
		{"unpublished", "episode unpublished is staged and not published"},
		{"lost", "episode unstaged is not staged"},
		{"lost", "episode missing is not staged"},
		{"surplus", "episode surplus was never planned"},
		{"differs", "all episodes make the same calls, but there are 2 different sequences of answers, in [1 3] episodes"},
	}
	if !slices.Equal(tr.report.Breaches, want) {
		t.Errorf("%+v", tr.report.Breaches)
	}
}

// A worker that is interrupted before it has found the cluster ends at once. A worker that
// serves a run must drain.
func TestOnlyAStartingWorkerMayExitAsInterrupted(t *testing.T) {
	for stderr, want := range map[string]bool{
		"stopping: closing sandboxes (interrupt again to stop at once)\n":                        true,
		"stopping: running episodes finish, no new ones start (interrupt again to stop at once)": false,
		"": false,
	} {
		for _, m := range []*member{{role: workerRole, leaving: true}, {role: workerRole, endedBy: map[Kind]bool{Drain: true}}} {
			if m.stderr = bytes.NewBufferString(stderr); m.exitIsExplained(130) != want {
				t.Errorf("after %q: %v", stderr, !want)
			}
		}
		if m := (&member{role: workerRole, stderr: bytes.NewBufferString(stderr)}); m.exitIsExplained(130) {
			t.Errorf("exit code 130 without an interrupt: %q", stderr)
		}
	}
}
