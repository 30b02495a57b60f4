package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// attempt returns an episode of a run at a task.
func attempt(run, task string, n int32, resolved bool) sinks.Staged {
	s := sinktest.Episode(run, 0)
	s.Episode.EpisodeID = fmt.Sprintf("%.32s", schemas.Hash([]any{run, task, n}))
	for i := range s.Steps {
		s.Steps[i].EpisodeID = s.Episode.EpisodeID
	}
	s.Episode.InstanceID, s.Episode.Attempt, s.Episode.Resolved, s.Episode.GoldUsed = task, n, &resolved, false
	s.Episode.BugKind, s.Episode.CostUSD = new("kind of "+task[:1]), new(0.25)
	if !resolved {
		s.Episode.Outcome = new(schemas.OutcomeUnresolved)
	}
	return s
}

func TestCompareShowsWhoSolvedWhat(t *testing.T) {
	a := []sinks.Staged{attempt("a", "left", 0, true), attempt("a", "left", 1, false), attempt("a", "right", 0, false), attempt("a", "both", 0, true), attempt("a", "mine", 0, true)}
	b := []sinks.Staged{attempt("b", "left", 0, false), attempt("b", "right", 0, true), attempt("b", "both", 0, true)}
	s := open(t, "", runDir(t, a...), runDir(t, b...))
	wantText(t, page(t, s, "/"), `href="/compare?a=1&amp;b=2"`)
	body := page(t, s, "/compare")
	wantText(t, body,
		"5 episodes of 4 tasks", "3 of 5, 23.1 to 88.2%", "3 tasks in both: 1 resolved by both, 1 only by A, 1 only by B, 0 by neither. Sign test of 1 against 1: p = 1.",
		"<th scope=\"row\">Cost per resolved episode</th><td class=\"n\">$0.4167</td><td class=\"n\">$0.3750</td><td class=\"n\">-$0.0417</td>", "kind of l (1 task)")
	_, solved, _ := strings.Cut(body, "Resolved only by A</h3>")
	onlyA, rest, _ := strings.Cut(solved, "Resolved only by B</h3>")
	for id, in := range map[string]string{"/t/1/" + a[0].Episode.EpisodeID: onlyA, "/t/1/" + a[1].Episode.EpisodeID: onlyA, "/t/2/" + b[0].Episode.EpisodeID: onlyA, "/t/1/" + a[2].Episode.EpisodeID: rest, "/t/2/" + b[1].Episode.EpisodeID: rest} {
		wantText(t, in, `href="`+id+`"`)
	}
	if strings.Contains(body, "builtin/both") {
		t.Error("a task that both solve is listed without all=1")
	}
	wantText(t, page(t, s, "/compare?a=1&b=2&all=1"), "Other tasks in both</h3>", "builtin/both")

	var got metrics.Comparison
	if err := json.Unmarshal([]byte(page(t, s, "/api/v1/compare?a=2&b=1&by=instance_id,attempt")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "tracesmith.compare/2" || got.Flips.OnlyA != 1 || got.A.Episodes != 3 || got.B.Episodes != 5 || len(got.Kinds) != 5 || got.Kinds[1].Value != "left, 0" {
		t.Errorf("%+v", got)
	}
	wantText(t, page(t, s, "/compare?by=bugkind"), `role="alert"`, "did you mean &#34;bug_kind&#34;")
	for _, path := range []string{"/compare?a=3", "/compare?b=x", "/api/v1/compare?a=0"} {
		if w := get(t, s, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
	if w := get(t, open(t, "", runDir(t, a...)), "/compare"); w.Code != http.StatusNotFound {
		t.Errorf("one place alone: status %d, want 404", w.Code)
	}
}

// found is the list of a search in steps as JSON.
type found struct {
	listed
	Hits map[string]struct {
		Steps    int
		Excerpts []struct {
			Step                int32
			Before, Text, After string
		}
	}
	Unsearched int
}

func TestSearchInStepsShowsExcerpts(t *testing.T) {
	one, two := sinktest.Episode("run-a", 0), long(20, 100)
	two.Episode.EpisodeID = strings.Repeat("2", 32)
	two.Steps[5].ArgumentsJSON = new(`{"command":"say \"The Needle\"\nagain"}`)
	two.Steps[7].Observation = new(strings.Repeat("İ", 100) + strings.Repeat("x", 500) + "the needle")
	s := open(t, "", runDir(t, one), runDir(t, two))
	search := func(query string) (got found) {
		t.Helper()
		if err := json.Unmarshal([]byte(page(t, s, "/api/v1/?in=steps&q="+query)), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 2 { // the second answer comes from memory
		got := search(url.QueryEscape(`"the needle"`))
		if h := got.Hits[two.Episode.EpisodeID]; got.Matched != 1 || h.Steps != 1 || h.Excerpts[0].Step != two.Steps[5].StepIndex || h.Excerpts[0].Text != `"The Needle"` || h.Excerpts[0].After != "\nagain" {
			t.Errorf("%+v", got.Hits)
		}
	}
	got := search("THE+NEEDLE")
	h := got.Hits[two.Episode.EpisodeID]
	if h.Steps != 3 || len(h.Excerpts) != 3 || len(h.Excerpts[1].Before) != 80+len("…") || strings.ToLower(h.Excerpts[1].Text) != "the needle" || got.Total != 2 {
		t.Errorf("%+v", got)
	}
	if got := search("the+needle&place=1"); got.Matched != 0 || got.Unsearched != 0 {
		t.Errorf("in the other place: %+v", got)
	}
	body := page(t, s, "/?in=steps&q=the+needle&sort=-n_turns")
	list := "list=" + url.QueryEscape("in=steps&q=the+needle&sort=-n_turns")
	wantText(t, body, fmt.Sprintf(`<a href="/t/2/%s?%s#s%d">step %[3]d</a>`, two.Episode.EpisodeID, list, two.Steps[5].StepIndex), "<mark>The Needle</mark>", `name="in" value="steps" checked`)
	if strings.Contains(page(t, s, "/?in=steps&q=+"), "<mark>") {
		t.Error("a search for nothing finds something")
	}
}

func TestSearchInStepsIsBounded(t *testing.T) {
	var all []sinks.Staged
	for i := range 3 {
		staged := long(600, 10)
		staged.Episode.EpisodeID = fmt.Sprintf("%032d", i)
		all = append(all, staged)
	}
	s := open(t, "", runDir(t, all...))
	body := page(t, s, "/?in=steps&q=i+do+step")
	wantText(t, body, "The search stopped after 1,000 steps, before it had read all episodes: look for a longer text, or narrow the list.", "597 more of its steps contain the text", "1–2 of 2")
	wantText(t, page(t, s, "/api/v1/?in=steps&q=i+do+step"), `"unsearched":1`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/?in=steps&q=another", nil))
	if !strings.Contains(w.Body.String(), "context canceled") {
		t.Errorf("the search of a client that is gone: %s", w.Body)
	}
}

// step returns the address that a link of a page with a relation leads to, or "".
func step(t *testing.T, s *viewer.Server, address, relation string) string {
	t.Helper()
	m := regexp.MustCompile(`<a ` + relation + ` href="([^"]*)"|<a href="([^"]*)" ` + relation).FindStringSubmatch(page(t, s, address))
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1] + m[2])
}

func TestNeighborsAreThoseOfTheList(t *testing.T) {
	all := many(250)
	dir := runDir(t, all...)
	write(t, filepath.Join(dir, "summary.json"), `{"missing":[{"episode_id":"fedcba9876543210","instance_id":"left-over"}]}`)
	s := open(t, "", dir, runDir(t, attempt("b", "other", 0, true)))
	for _, query := range []string{"", "?sort=-n_turns", "?outcome=unresolved&sort=-n_turns", "?e=" + url.QueryEscape("n_turns > 240"), "?q=inst-3+repo1", "?in=steps&q=inst-&sort=n_turns"} {
		var want []string
		for n := 1; ; n++ {
			got := list(t, s, "?"+strings.TrimPrefix(query, "?")+fmt.Sprint("&page=", n))
			for _, e := range got.Episodes {
				want = append(want, e.EpisodeID)
			}
			if len(want)+1 >= got.Matched {
				break
			}
		}
		first := regexp.MustCompile(`<td><a href="(/t/[^"]*)"`).FindStringSubmatch(page(t, s, "/"+query))
		if first == nil {
			if len(want) > 0 {
				t.Errorf("%s: no link", query)
			}
			continue
		}
		var walked []string
		last := ""
		for address := html.UnescapeString(first[1]); address != ""; address = step(t, s, address, `rel="next"`) {
			at, _ := url.Parse(address)
			walked, last = append(walked, filepath.Base(at.Path)), address
		}
		if !slices.Equal(walked, want) {
			t.Errorf("%s: walked over %d episodes, want the %d of the list in its order", query, len(walked), len(want))
		}
		if len(want) > 1 && !strings.Contains(step(t, s, last, `rel="prev"`), want[len(want)-2]) {
			t.Errorf("%s: the way back from %s leads to %s", query, last, step(t, s, last, `rel="prev"`))
		}
		if back := step(t, s, last, `data-key="u"`); len(want) > 200 && !strings.Contains(back, "page=3") || !strings.HasPrefix(back, "/"+query) && !strings.Contains(back, "page=") {
			t.Errorf("%s: the list is at %s", query, back)
		}
	}
	// An episode that has left the list, because of its mark for example, keeps its place in it.
	outside := "/t/1/" + all[1].Episode.EpisodeID + "?list=" + url.QueryEscape("outcome=unresolved")
	if previous, next := step(t, s, outside, `rel="prev"`), step(t, s, outside, `rel="next"`); !strings.Contains(previous, all[0].Episode.EpisodeID) || !strings.Contains(next, all[3].Episode.EpisodeID) {
		t.Errorf("neighbors %s and %s", previous, next)
	}
	wantText(t, page(t, s, outside), `action="/t/1/`+all[1].Episode.EpisodeID+`/mark?list=outcome%3Dunresolved"`, `/sample?list=outcome%3Dunresolved"`)
	broken := "/t/1/" + all[1].Episode.EpisodeID + "?list=" + url.QueryEscape("e=resolvd&%zz")
	if next := step(t, s, broken, `rel="next"`); next != "/t/1/"+all[2].Episode.EpisodeID {
		t.Errorf("a list that cannot be read: the next episode is %s", next)
	}
}

// liveRun returns the directory of a run that this process is working on until stop is called.
// write makes its status public.
func liveRun(t *testing.T) (dir string, jobs *observe.Activities, write, stop func()) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "live")
	d, err := rundir.Open(rundir.Options{Path: dir, RunID: "run-a"})
	if err != nil {
		t.Fatal(err)
	}
	jobs = observe.NewActivities()
	begin := rundir.Begin{Selected: 3, Slots: 2, Activities: jobs, Spent: func() float64 { return 0 }}
	status := rundir.NewStatusFile(d, begin, observe.Silent{}, slog.New(slog.DiscardHandler))
	status.RunStarted(observe.Start{})
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			status.Close(false, nil)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return dir, jobs, func() { status.JobStarted(schemas.Job{}, 1) }, stop
}

func TestRunningJobsAreListed(t *testing.T) {
	dir, jobs, publish, stop := liveRun(t)
	jobs.Begin(schemas.Job{EpisodeID: "e1", Instance: attack, Attempt: 2}, 40, observe.InSandboxStart)
	jobs.SetTurn("e1", 3)
	jobs.Set("e1", observe.InTool, "pdb "+attack)
	jobs.Set("e1", observe.InModel, "")
	jobs.Begin(schemas.Job{EpisodeID: "fedcba9876543210", Instance: "slow"}, 0, observe.InSandboxStart)
	jobs.Retry(schemas.Job{EpisodeID: "e3", Instance: attack}, time.Time{})
	write(t, filepath.Join(dir, "summary.json"), `{"missing":[{"episode_id":"fedcba9876543210","instance_id":"slow"}]}`)
	publish()
	s := open(t, "", dir)
	for _, path := range []string{"/", "/jobs"} {
		body := page(t, s, path)
		wantText(t, body, "2 running jobs", "<td>3/40</td>", "<td>waits for model</td>", "pdb &#34;&#39;&gt;&lt;script&gt;", "<th scope=\"row\">slow#0</th>", "starting sandbox", "1 episode waits for a retry")
		wantHarmless(t, path, body)
	}
	wantText(t, page(t, s, "/"), `<span class="badge plain">running</span>`)
	wantText(t, page(t, s, "/api/v1/jobs"), `"schema":"tracesmith.status/2"`, `"doing":"model"`)
	before := page(t, s, "/version")
	stop()
	for page(t, s, "/version") == before {
		if t.Context().Err() != nil {
			t.Fatal("the version never changed")
		}
	}
	wantText(t, page(t, s, "/"), `<div class="jobs"></div>`, "stopped: 3 selected", "unfinished")
	wantText(t, page(t, s, "/jobs"), "No run is in progress")
}

func TestGoldPatchStandsBesideTheFinalOne(t *testing.T) {
	staged, other := sinktest.Episode("run-a", 0), sinktest.Episode("run-a", 1)
	staged.Episode.TaskKey, other.Episode.TaskKey = new("task"), new("another version")
	s := open(t, "", runDir(t, staged, other))
	address := "/t/1/" + staged.Episode.EpisodeID
	if body := page(t, s, address); strings.Contains(body, "Gold patch") {
		t.Error("the page shows the gold patch, although nobody asked for it")
	}
	s.ShowGold(map[string]string{"task": "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+<script>\x1b\n"})
	body := page(t, s, address)
	wantText(t, body, "<h3>Final patch</h3>", "<h3>Gold patch</h3>", "&lt;script&gt;␛")
	wantHarmless(t, address, body)
	wantText(t, page(t, s, "/api/v1"+address), `"gold_patch":"diff --git`)
	wantText(t, page(t, s, "/t/1/"+other.Episode.EpisodeID), "no gold patch for this version of the task")
}
