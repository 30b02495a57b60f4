package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/sinks"
)

// checkStaged checks that the staged objects in known, which maps keys to hashes, still exist
// with the same bytes. It adds all staged objects to known.
func (t *trial) checkStaged(ctx context.Context, known map[string]string) error {
	if _, err := os.Stat(filepath.Join(t.run, "run.json")); errors.Is(err, fs.ErrNotExist) && len(known) == 0 {
		return nil
	}
	store, err := t.cfg.Open(ctx, t.run)
	if err != nil {
		return fmt.Errorf("opening the staged episodes: %w", err)
	}
	now := map[string]string{}
	for o, err := range store.List(ctx, "staging/") {
		var body []byte
		if err == nil {
			body, err = store.Get(ctx, o.Key)
		}
		if err != nil {
			return fmt.Errorf("reading the staged episodes: %w", err)
		}
		sum := sha256.Sum256(body)
		now[o.Key] = hex.EncodeToString(sum[:])
	}
	for name, sum := range known {
		switch current, ok := now[name]; {
		case !ok:
			t.breach("lost", "%s was staged and is gone", name)
		case current != sum:
			t.breach("changed", "%s was staged and has changed", name)
		}
	}
	maps.Copy(known, now)
	return nil
}

// walkFiles calls visit for the files below a directory, which need not exist.
func walkFiles(dir string, visit func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		return visit(path)
	})
}

// check checks the result of the batch.
func (t *trial) check(ctx context.Context) error {
	t.checkCalls()
	if t.single != nil {
		t.checkResume(t.single.resumed)
	}
	if err := t.checkSets(ctx); err != nil {
		return err
	}
	return t.checkLeftovers(ctx)
}

// checkSets publishes the batch and compares the planned, staged and published episodes.
func (t *trial) checkSets(ctx context.Context) error {
	var planned struct {
		IDs []string `json:"episode_ids"`
	}
	config := filepath.Join(t.cfg.Dir, "run.yaml")
	if err := t.runJSON(ctx, &planned, "run", "-c", config, "--run-dir", t.run, "--dry-run", "--json"); err != nil {
		return err
	}
	if n := len(planned.IDs); n != t.cfg.Episodes {
		t.breach("unplanned", "%d episodes are planned, %d were requested", n, t.cfg.Episodes)
	}
	dataset := t.dataset()
	publish := []string{"publish", t.run, "--to", dataset, "--json"}
	if t.proxy != nil {
		t.proxy.startPublishing()
		publish = append(publish, "--s3-endpoint", t.proxy.URL)
	}
	var report struct{}
	if err := t.runJSON(ctx, &report, publish...); err != nil {
		t.breach("unpublished", "%v", err)
		return nil
	}
	staged, err := t.read(ctx, t.run)
	if err != nil {
		return err
	}
	published, err := t.read(ctx, dataset)
	if err != nil {
		return err
	}
	t.report.Sets = Sets{len(planned.IDs), len(staged), len(published)}
	t.compareSets(planned.IDs, staged, published)
	return nil
}

// compareSets checks that exactly the planned episodes are staged and published, and that they have
// the right content. It removes them from staged and published.
func (t *trial) compareSets(planned []string, staged, published map[string]episodeDigest) {
	byContent := map[string]int{} // number of episodes; the model makes the same calls in all of them
	for _, id := range planned {
		s, isStaged := staged[id]
		p, isPublished := published[id]
		delete(staged, id)
		delete(published, id)
		if !isStaged {
			t.breach("lost", "episode %s is not staged", id)
			continue
		}
		byContent[s.content]++
		if s.outcome != "resolved" {
			t.breach("wrong", "episode %s is %s", id, s.outcome)
		}
		if !isPublished {
			t.breach("unpublished", "episode %s is staged and not published", id)
		} else if p != s {
			t.breach("differs", "episode %s is not published as it is staged", id)
		}
	}
	for _, id := range append(slices.Sorted(maps.Keys(staged)), slices.Sorted(maps.Keys(published))...) {
		t.breach("surplus", "episode %s was never planned", id)
	}
	if len(byContent) > 1 && t.cfg.Sandbox != "local" { // observations of local sandboxes contain their directories
		t.breach("differs", "all episodes make the same calls, but there are %d different sequences of answers, in %v episodes", len(byContent), slices.Sorted(maps.Values(byContent)))
	}
}

// episodeDigest is what the checks compare of an episode: its outcome, a hash of its calls and
// observations (content), and a hash of these and of columns that differ between episodes, such as
// times (withMetadata).
type episodeDigest struct{ outcome, content, withMetadata string }

// read returns the digests of the episodes in a run directory or a dataset, by episode id.
func (t *trial) read(ctx context.Context, place string) (map[string]episodeDigest, error) {
	list, done, err := t.cfg.Read(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", place, err)
	}
	out := map[string]episodeDigest{}
	for tr, err := range list {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reading %s: %w", place, err), done())
		}
		if _, duplicate := out[tr.Episode.EpisodeID]; duplicate {
			t.breach("surplus", "episode %s is twice in %s", tr.Episode.EpisodeID, place)
		}
		if out[tr.Episode.EpisodeID], err = digest(tr); err != nil {
			return nil, errors.Join(err, done())
		}
	}
	return out, done()
}

func digest(tr sinks.Trajectory) (e episodeDigest, err error) {
	if tr.Episode.Outcome != nil {
		e.outcome = *tr.Episode.Outcome
	}
	contentHash, fullHash := sha256.New(), sha256.New()
	for i, s := range tr.Steps {
		if int(s.StepIndex) != i {
			return e, fmt.Errorf("episode %s: step %d is in place %d", tr.Episode.EpisodeID, s.StepIndex, i)
		}
		content, err := json.Marshal([]any{s.Source, s.Message, s.ToolName, s.ArgumentsJSON, s.Observation})
		if err != nil {
			return e, fmt.Errorf("encoding a step: %w", err)
		}
		contentHash.Write(append(content, '\n'))
		metadata, err := json.Marshal([]any{s.StepIndex, s.TS, s.ToolCallID, s.ObservationSHA256, s.WorkspaceSHA256, s.PromptSHA256, s.PromptTokens, s.LLMMS, s.EnvMS})
		if err != nil {
			return e, fmt.Errorf("encoding a step: %w", err)
		}
		fullHash.Write(append(append(metadata, content...), '\n'))
	}
	e.content, e.withMetadata = hex.EncodeToString(contentHash.Sum(nil)), hex.EncodeToString(fullHash.Sum(nil))
	return e, nil
}

// runJSON runs a command of the program and decodes the JSON that it prints.
func (t *trial) runJSON(ctx context.Context, into any, args ...string) error {
	out, err := t.cfg.Child(ctx, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		// A dry run prints its plan even if a check fails, here that of the model server, which has ended.
		if exit.ExitCode() == 7 && json.Valid(out) {
			err = nil
		} else {
			text, _ := errorMessage(string(exit.Stderr))
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("tracesmith %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// checkCalls compares the requests at the model server with the calls that the run recorded.
func (t *trial) checkCalls() {
	totals, c := t.server.Totals(), t.report.Calls
	answered, repeated := map[string]bool{}, 0
	for _, ex := range t.server.Log() {
		if turn := fmt.Sprintf("%s %d", ex.SessionID, ex.Turn); ex.Answered && answered[turn] {
			repeated++
		} else if ex.Answered {
			answered[turn] = true
		}
	}
	t.report.Server = Server{t.server.requests, totals.Answered, repeated}
	faults := 0
	for k, name := range serverFaults {
		n := totals.Faults[name]
		if faults += n; k == RateLimit { // consecutive refusals are one fault
			n = (n + rateLimitedRequests - 1) / rateLimitedRequests
		}
		t.report.struck[k] += n
	}
	late := max(0, c.Failed-faults) // failures without a fault: the client gave up waiting
	// On a nearly full disk, the run may record that a reply was paid for, and then fail to record the
	// reply. Each worker can lose one reply in this way.
	unrecorded, maxUnrecorded := max(0, c.Answered-t.cfg.Episodes*len(turns)), t.cfg.Workers*t.report.struck[Disk]
	maxLost := t.cfg.Workers * (t.report.struck[Kill] + t.report.struck[Clock] + t.report.struck[Disk] + t.report.struck[StoreTorn])
	if t.cfg.Fleet > 0 {
		// A killed or stopped worker loses its jobs. So does a worker that cannot renew its leases while the
		// cluster elects a new leader: then the jobs are delivered again.
		maxLost = max(slots*(t.report.struck[Worker]+t.report.struck[Stop]+t.report.struck[StoreTorn]), t.report.Redeliveries)
		maxUnrecorded = maxLost
	}
	if c.Made != c.Answered+c.Failed+c.Lost {
		t.breach("unaccounted", "%d calls were made: %d answered, %d failed, %d lost", c.Made, c.Answered, c.Failed, c.Lost)
	}
	if n := t.server.requests; c.Made < n || c.Made > n+c.Lost {
		t.breach("unaccounted", "the server got %d requests, the run counts %d calls, %d of them lost", n, c.Made, c.Lost)
	}
	if totals.Answered < c.Answered || totals.Answered > c.Answered+c.Lost+late {
		t.breach("unaccounted", "the server sent %d answers, the run recorded %d, lost %d and gave up on %d", totals.Answered, c.Answered, c.Lost, late)
	}
	if unrecorded > maxUnrecorded {
		t.breach("unkept", "%d answers were paid for and not recorded; the faults explain at most %d", unrecorded, maxUnrecorded)
	}
	if repeated > c.Lost+late+unrecorded {
		t.breach("asked_again", "%d answers were requested again, %d were lost in flight, %d could not be recorded", repeated, c.Lost+late, unrecorded)
	}
	if c.Lost > maxLost {
		t.breach("lost_calls", "%d calls were lost; the faults explain at most %d", c.Lost, maxLost)
	}
	for _, p := range t.server.Problems() {
		if !strings.Contains(p, "was asked for again after its answer") {
			t.breach("wrong", "the model server was sent: %s", p)
		}
	}
}

// checkResume checks how soon restarted processes made their first model call.
func (t *trial) checkResume(durations []time.Duration) {
	var all []float64
	for _, d := range durations[min(1, len(durations)):] { // the first start resumes nothing
		all = append(all, float64(d)/float64(time.Millisecond))
	}
	t.report.Resume.Within = float64(t.cfg.Within) / float64(time.Millisecond)
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r := &t.report.Resume
	r.N, r.Median, r.Max = len(all), all[(len(all)-1)/2], all[len(all)-1]
	if r.Max > r.Within {
		t.breach("slow_resume", "a restarted process made its first call after %.0f ms, the bound is %.0f", r.Max, r.Within)
	}
}

// checkLeftovers looks for processes, sandboxes, uploads and files that the batch should have
// removed.
func (t *trial) checkLeftovers(ctx context.Context) error {
	alive, err := t.awaitProcesses()
	if err != nil {
		return err
	}
	for _, p := range alive {
		t.breach("left_process", "%s", p)
	}
	checkFiles := func(name, dir string, isLeftover func(rel string) bool) error {
		return walkFiles(dir, func(path string) error {
			if rel, err := filepath.Rel(dir, path); err != nil || isLeftover(rel) {
				t.breach(name, "%s", path)
			}
			return nil
		})
	}
	checkUploads := func(place string) error {
		var torn []sinks.UnfinishedWrite
		store, err := t.cfg.Open(ctx, place)
		if s, ok := store.(sinks.Sweeper); ok && err == nil {
			torn, err = s.UnfinishedWrites(ctx)
		}
		for _, u := range torn {
			t.breach("left_upload", "%s in %s", u.Name, place)
		}
		return err
	}
	if t.cfg.Sandbox == "docker" {
		ids, err := containers(t.pids...)
		if err != nil {
			return err
		}
		for _, id := range ids {
			t.breach("left_sandbox", "container %s", id)
		}
	}
	return errors.Join(
		checkFiles("left_sandbox", t.tempDir(), func(string) bool { return true }),
		checkUploads(t.run),
		checkUploads(t.dataset()),
		checkFiles("left_file", t.run, func(rel string) bool {
			top, _, _ := strings.Cut(rel, "/")
			return !strings.HasPrefix(top, ".tracesmith-") && !slices.Contains([]string{"run.json", "run.lock", "run.log", "tasks.json", "status.json", "summary.json", "summary.md", "staging", "wire", "fleet"}, top)
		}),
	)
}

// awaitProcesses waits up to 30 seconds until no process of the batch is alive, because the
// children of a killed process end a little later. It lists those that are still alive.
func (t *trial) awaitProcesses() (alive []string, err error) {
	alive, err = t.alive()
	for n := 0; n < 300 && err == nil && len(alive) > 0; n++ {
		time.Sleep(100 * time.Millisecond)
		alive, err = t.alive()
	}
	return alive, err
}

// alive lists the running processes of the batch: those that use its directory of temporary
// files, and guests whose arguments name a process of the batch as their owner.
func (t *trial) alive() (out []string, err error) {
	all, err := processes()
	for _, p := range all {
		isGuest := len(p.args) > 3 && p.args[1] == t.cfg.Guest && slices.ContainsFunc(t.pids, func(pid int) bool { return strings.Contains(p.args[3], fmt.Sprintf(".%d.", pid)) })
		if isGuest || bytes.Contains(p.environ, []byte("TMPDIR="+t.tempDir()+"\x00")) {
			out = append(out, fmt.Sprintf("%d %s", p.pid, strings.Join(p.args, " ")))
		}
	}
	return out, err
}

// tempDir returns the directory of the processes' temporary files.
func (t *trial) tempDir() string { return filepath.Join(t.cfg.Dir, "tmp") }
