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

// unchanged checks that staged objects stay, with the same bytes.
func (t *trial) unchanged(ctx context.Context, known map[string]string) error {
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
		switch is, ok := now[name]; {
		case !ok:
			t.breach("lost", "%s was staged and is gone", name)
		case is != sum:
			t.breach("changed", "%s was staged and has changed", name)
		}
	}
	maps.Copy(known, now)
	return nil
}

// walk calls show for the files below a directory, which need not exist.
func walk(dir string, show func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		return show(path)
	})
}

// check checks the result of the batch.
func (t *trial) check(ctx context.Context) error {
	t.account()
	if t.lone != nil {
		t.resumed(t.lone.resumed)
	}
	if err := t.sets(ctx); err != nil {
		return err
	}
	return t.leftBehind(ctx)
}

// sets compares the episodes that were planned, staged and published.
func (t *trial) sets(ctx context.Context) error {
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
		t.proxy.batchOver()
		publish = append(publish, "--s3-endpoint", t.proxy.URL)
	}
	var published struct{}
	if err := t.runJSON(ctx, &published, publish...); err != nil {
		t.breach("unpublished", "%v", err)
		return nil
	}
	staged, err := t.read(ctx, t.run)
	if err != nil {
		return err
	}
	shipped, err := t.read(ctx, dataset)
	if err != nil {
		return err
	}
	t.report.Sets = Sets{len(planned.IDs), len(staged), len(shipped)}
	calls := map[string]int{}
	for _, id := range planned.IDs {
		s, ok := staged[id]
		if !ok {
			t.breach("lost", "episode %s is not staged", id)
			continue
		}
		calls[s.calls]++
		if s.outcome != "resolved" {
			t.breach("wrong", "episode %s is %s", id, s.outcome)
		}
		if p, ok := shipped[id]; !ok {
			t.breach("unpublished", "episode %s is staged and not published", id)
		} else if p != s {
			t.breach("differs", "episode %s is not published as it is staged", id)
		}
		delete(staged, id)
		delete(shipped, id)
	}
	for _, id := range append(slices.Sorted(maps.Keys(staged)), slices.Sorted(maps.Keys(shipped))...) {
		t.breach("surplus", "episode %s was never planned", id)
	}
	if len(calls) > 1 && t.cfg.Sandbox != "local" { // its observations name its directory
		t.breach("differs", "the same calls were answered in %d ways, %v times", len(calls), slices.Sorted(maps.Values(calls)))
	}
	return nil
}

// episode is what is compared of an episode: its outcome, and hashes of its calls and
// observations, and of everything.
type episode struct{ outcome, calls, all string }

func (t *trial) read(ctx context.Context, place string) (map[string]episode, error) {
	list, done, err := t.cfg.Read(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", place, err)
	}
	out := map[string]episode{}
	for tr, err := range list {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reading %s: %w", place, err), done())
		}
		if _, twice := out[tr.Episode.EpisodeID]; twice {
			t.breach("surplus", "episode %s is twice in %s", tr.Episode.EpisodeID, place)
		}
		if out[tr.Episode.EpisodeID], err = digest(tr); err != nil {
			return nil, errors.Join(err, done())
		}
	}
	return out, done()
}

func digest(tr sinks.Trajectory) (e episode, err error) {
	if tr.Episode.Outcome != nil {
		e.outcome = *tr.Episode.Outcome
	}
	calls, all := sha256.New(), sha256.New()
	for i, s := range tr.Steps {
		if int(s.StepIndex) != i {
			return e, fmt.Errorf("episode %s: step %d is in place %d", tr.Episode.EpisodeID, s.StepIndex, i)
		}
		shown, err := json.Marshal([]any{s.Source, s.Message, s.ToolName, s.ArgumentsJSON, s.Observation})
		if err != nil {
			return e, fmt.Errorf("encoding a step: %w", err)
		}
		calls.Write(append(shown, '\n'))
		whole, err := json.Marshal([]any{s.StepIndex, s.TS, s.ToolCallID, s.ObservationSHA256, s.WorkspaceSHA256, s.PromptSHA256, s.PromptTokens, s.LLMMS, s.EnvMS})
		if err != nil {
			return e, fmt.Errorf("encoding a step: %w", err)
		}
		all.Write(append(append(whole, shown...), '\n'))
	}
	e.calls, e.all = hex.EncodeToString(calls.Sum(nil)), hex.EncodeToString(all.Sum(nil))
	return e, nil
}

// runJSON runs a command of the program and decodes the JSON that it prints.
func (t *trial) runJSON(ctx context.Context, into any, args ...string) error {
	out, err := t.cfg.Child(ctx, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		text, _ := errorMessage(string(exit.Stderr))
		err = fmt.Errorf("%w: %s", err, text)
	}
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("tracesmith %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// account compares what was paid with what was recorded.
func (t *trial) account() {
	totals, c := t.server.Totals(), t.report.Calls
	answered, again := map[string]bool{}, 0
	for _, ex := range t.server.Log() {
		if turn := fmt.Sprintf("%s %d", ex.SessionID, ex.Turn); ex.Answered && answered[turn] {
			again++
		} else if ex.Answered {
			answered[turn] = true
		}
	}
	t.report.Server = Server{t.server.asked, totals.Answered, again}
	faults := 0
	for k, name := range ofServer {
		n := totals.Faults[name]
		if faults += n; k == RateLimit { // a storm counts once
			n = (n + storm - 1) / storm
		}
		t.report.struck[k] += n
	}
	late := max(0, c.Failed-faults) // the client gave up, whatever the server did
	// A full disk may have room for a payment but not for the reply that was paid for.
	unkept, mostUnkept := max(0, c.Answered-t.cfg.Episodes*len(turns)), t.cfg.Workers*t.report.struck[Disk]
	most := t.cfg.Workers * (t.report.struck[Kill] + t.report.struck[Clock] + t.report.struck[Disk] + t.report.struck[StoreTorn])
	if t.cfg.Fleet > 0 { // a stopped worker loses its jobs; so does one that cannot renew its lease in an election
		most = max(slots*(t.report.struck[Worker]+t.report.struck[Stop]+t.report.struck[StoreTorn]), t.report.HandedAgain)
		mostUnkept = most
	}
	if c.Made != c.Answered+c.Failed+c.Lost {
		t.breach("unaccounted", "%d calls were made: %d answered, %d failed, %d lost", c.Made, c.Answered, c.Failed, c.Lost)
	}
	if n := t.server.asked; c.Made < n || c.Made > n+c.Lost {
		t.breach("unaccounted", "the server was asked %d times, the run counts %d calls, %d of them lost", n, c.Made, c.Lost)
	}
	if totals.Answered < c.Answered || totals.Answered > c.Answered+c.Lost+late {
		t.breach("unaccounted", "the server answered %d times, the run recorded %d, lost %d and gave up %d", totals.Answered, c.Answered, c.Lost, late)
	}
	if unkept > mostUnkept {
		t.breach("unkept", "%d answers were paid for and not recorded, at most %d had no room on the disk", unkept, mostUnkept)
	}
	if again > c.Lost+late+unkept {
		t.breach("asked_again", "%d answers were requested again, %d were lost in flight, %d could not be recorded", again, c.Lost+late, unkept)
	}
	if c.Lost > most {
		t.breach("lost_calls", "%d calls were lost, at most %d were running when processes ended", c.Lost, most)
	}
	for _, p := range t.server.Problems() {
		if !strings.Contains(p, "was asked for again after its answer") {
			t.breach("wrong", "the model server was sent: %s", p)
		}
	}
}

// resumed checks how soon restarted processes were at work.
func (t *trial) resumed(took []time.Duration) {
	var all []float64
	for _, d := range took[min(1, len(took)):] { // the first start resumes nothing
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

// leftBehind looks for what the batch should have removed.
func (t *trial) leftBehind(ctx context.Context) error {
	alive, err := t.still()
	if err != nil {
		return err
	}
	for _, p := range alive {
		t.breach("left_process", "%s", p)
	}
	left := func(name, dir string, wrong func(rel string) bool) error {
		return walk(dir, func(path string) error {
			if rel, err := filepath.Rel(dir, path); err != nil || wrong(rel) {
				t.breach(name, "%s", path)
			}
			return nil
		})
	}
	uploads := func(place string) error {
		var torn []sinks.Torn
		store, err := t.cfg.Open(ctx, place)
		if s, ok := store.(sinks.Sweeper); ok && err == nil {
			torn, err = s.Torn(ctx)
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
		left("left_sandbox", t.temp(), func(string) bool { return true }),
		uploads(t.run),
		uploads(t.dataset()),
		left("left_file", t.run, func(rel string) bool {
			top, _, _ := strings.Cut(rel, "/")
			return !strings.HasPrefix(top, ".tracesmith-") && !slices.Contains([]string{"run.json", "run.lock", "status.json", "summary.json", "summary.md", "staging", "wire", "fleet"}, top)
		}),
	)
}

// still lists the processes of the batch that stay alive: children of killed processes
// end a moment after them.
func (t *trial) still() (alive []string, err error) {
	alive, err = t.alive()
	for n := 0; n < 300 && err == nil && len(alive) > 0; n++ {
		time.Sleep(100 * time.Millisecond)
		alive, err = t.alive()
	}
	return alive, err
}

// alive lists the running processes of the batch: those with its directory of temporary
// files, and the guests of its processes.
func (t *trial) alive() (out []string, err error) {
	all, err := processes()
	for _, p := range all {
		owned := len(p.args) > 3 && p.args[1] == t.cfg.Guest && slices.ContainsFunc(t.pids, func(pid int) bool { return strings.Contains(p.args[3], fmt.Sprintf(".%d.", pid)) })
		if owned || bytes.Contains(p.environ, []byte("TMPDIR="+t.temp()+"\x00")) {
			out = append(out, fmt.Sprintf("%d %s", p.pid, strings.Join(p.args, " ")))
		}
	}
	return out, err
}

// temp returns the children's directory of temporary files.
func (t *trial) temp() string { return filepath.Join(t.cfg.Dir, "tmp") }
