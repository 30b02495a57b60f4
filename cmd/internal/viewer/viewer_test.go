package viewer_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func TestListFindsSortsAndPages(t *testing.T) {
	s := open(t, "", runDir(t, many(230)...))
	for _, c := range []struct {
		query   string
		matched int
		first   int32 // turns of the first episode
	}{
		{"", 230, 0},
		{"?sort=-n_turns", 230, 229},
		{"?sort=n_turns&page=3", 230, 200},
		{"?e=" + url.QueryEscape("n_turns < 10 && resolved"), 6, 1},
		{"?outcome=unresolved&sort=-n_turns", 77, 228},
		{"?q=inst-3+repo1", 6, 31},
		{"?e=" + url.QueryEscape("steps.exists(s, s.source == 'user')"), 230, 0},
		{"?page=99", 230, 200},
	} {
		got := list(t, s, c.query)
		if got.Matched != c.matched || got.Total != 230 || len(got.Episodes) == 0 || got.Episodes[0].NTurns != c.first || len(got.Episodes) > 100 {
			t.Errorf("%s: %d of %d match, %d listed, first %+v; want %d, first with %d turns", c.query, got.Matched, got.Total, len(got.Episodes), got.Episodes[0].NTurns, c.matched, c.first)
		}
	}
	body := page(t, s, "/?outcome=unresolved&sort=-n_turns")
	wantText(t, body, `aria-current="true"`, `aria-sort="descending"`, "1–77 of 77", "resolved (reference fix)</span> <span class=\"quiet\">153", `name="outcome" value="unresolved"`)
	wantText(t, page(t, s, "/"), `title="replies of the policy"`, `title="the agent knows the reference fix and made its edits">resolved (reference fix)`, ">Repository</summary>")
	if strings.Contains(page(t, open(t, "", runDir(t, many(3)...)), "/"), ">Repository</summary>") {
		t.Error("the list can be narrowed by a field of which every episode has another value")
	}
	for query, message := range map[string]string{"?e=resolvd": `did you mean &#34;resolved&#34;`, "?sort=n_turn": `did you mean &#34;n_turns&#34;`} {
		wantText(t, page(t, s, "/"+query), message, `role="alert"`)
	}
}

func TestJobsWithoutAnEpisodeAreListed(t *testing.T) {
	dir := runDir(t, many(2)...)
	write(t, filepath.Join(dir, "dead-letters.jsonl"), `{"run_id":"run-a","unit_key":"0123456789abcdef","stage":"rollout","state":"failed","error_class":"infra","error_message":"the disk is full <b>","attempts":3}`+"\n")
	write(t, filepath.Join(dir, "summary.json"), `{"missing":[{"episode_id":"fedcba9876543210","instance_id":"left-over"}]}`)
	write(t, filepath.Join(dir, "status.json"), `{"schema":"tracesmith.standing/1","run_id":"run-a","phase":"stopped","selected":4,"done":2,"failed":1}`)
	s := open(t, "", dir)
	body := page(t, s, "/")
	wantText(t, body, "stopped: 4 selected, 1 without an outcome: repeat the run command, 1 given up: repeat the run command with --retry infra", "the disk is full &lt;b&gt;", "no episode after 3 attempts", "left-over", "unfinished", "2 episodes, 2 jobs without one")
	if got := list(t, s, "?outcome=infra"); got.Matched != 1 || len(got.Dead) != 1 || got.Dead[0].UnitKey != "0123456789abcdef" {
		t.Errorf("the outcome infra has %+v", got)
	}
	wantText(t, page(t, s, "/stats/1"), "without an episode: 1 infrastructure failure (infra 1)")
}

func TestEpisodeShowsTheDebuggerAndTheResult(t *testing.T) {
	staged := sinktest.Episode("run-a", 0)
	step := func(index int32, command, text string, line int32, target, breakpoints string) schemas.StepRow {
		return schemas.StepRow{
			EpisodeID: staged.Episode.EpisodeID, StepIndex: index, TurnIndex: &index, Source: "agent", ToolName: new("pdb"), ToolCallID: new(fmt.Sprint(index)),
			ArgumentsJSON: new(fmt.Sprintf(`{"command":%q}`, command)), Observation: &text, Targets: []string{target}, BreakpointsJSON: &breakpoints,
			FrameFile: new("a.py"), FrameLine: &line, FrameFunction: new("total"), DebuggerEvent: new("line"),
			ClaimsJSON: new(`[{"kind":"value","expression":"n","value":"2","verdict":"false","why":"step 1 prints 1"}]`),
		}
	}
	listing := "Current frame: a.py:2 in total\n   1    \t    def total():\n   2 B->\t        return n"
	staged.Steps = []schemas.StepRow{
		step(0, "c", "hit\n"+listing, 2, "a.py:1-2", `[{"file":"a.py","line":2,"enabled":true,"hits":1}]`),
		step(1, "p n", "1\n"+listing, 2, "a.py:1-2", `[{"file":"a.py","line":2,"enabled":true,"hits":1}]`),
		step(2, "p n", "2\n"+listing, 2, "a.py:1-2", `[{"file":"a.py","line":2,"enabled":true,"hits":2},{"file":"b.py","line":9,"condition":"x > 1"}]`),
	}
	staged.Episode.NSteps = 3
	staged.Episode.Patch = new("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@ def total():\n-    return n\n+    return n + 1\n")
	staged.Episode.F2PPassed, staged.Episode.F2PTotal = new(int32(1)), new(int32(1))
	s := open(t, "", runDir(t, staged))
	body := page(t, s, "/t/1/"+staged.Episode.EpisodeID)
	wantText(t, body,
		"    1  def total():\n●▶   2      return n", "first stop", "set breakpoint a.py:2", "hit breakpoint a.py:2 (2 times)", "set breakpoint b.py:9", "b.py:9 if x &gt; 1",
		"<pre>2</pre><p class=\"quiet\">step 1 had</p><pre class=\"before\">1</pre>",
		`title="step 1 prints 1">false</span> value: n is 2`, "step 1 prints 1", `<span class="add">&#43;    return n &#43; 1`, "<dd>the agent knows the reference fix and made its edits</dd>", "1 of 1", `id="s2"`, `href="#s2"`)
	if w := get(t, s, "/t/1/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown episode has status %d", w.Code)
	}
	if w := get(t, s, "/t/7/"+staged.Episode.EpisodeID); w.Code != http.StatusNotFound {
		t.Errorf("an unknown place has status %d", w.Code)
	}
}

func TestLongTextsAreShortenedAndWholeOnRequest(t *testing.T) {
	staged := long(1, 300<<10)
	text := *staged.Steps[3].Observation
	s := open(t, "", runDir(t, staged))
	address := "/t/1/" + staged.Episode.EpisodeID
	body := page(t, s, address)
	if len(body) > 200<<10 {
		t.Errorf("the page has %d bytes", len(body))
	}
	wantText(t, body, "the needle in the last step", "left out here", address+"/s/3/observation")
	w := get(t, s, address+"/s/3/observation")
	if w.Body.String() != text || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("the whole text has %d bytes and headers %v, want %d bytes to save as plain text", w.Body.Len(), w.Header(), len(text))
	}
	for _, path := range []string{"/s/3/other", "/s/3/triggered-0", "/s/99/observation", "/s/x/observation"} {
		if w := get(t, s, address+path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}

	staged = long(1000, 16<<10)
	s = open(t, "", runDir(t, staged))
	if body = page(t, s, address); len(body) > 4<<20 || strings.Contains(body, "the needle") {
		t.Errorf("a page of 16 MB of text has %d bytes, want previews", len(body))
	}
	wantText(t, page(t, s, address+"?q=NEEDLE"), "Steps that contain “NEEDLE”: 1 <a", `<a href="#s1002">1002</a>`)
}

func TestSampleSaysWhatIsTrainedOn(t *testing.T) {
	staged := sinktest.Episode("run-a", 0)
	s := open(t, "", runDir(t, staged))
	address := "/t/1/" + staged.Episode.EpisodeID + "/sample"
	body := page(t, s, address)
	wantText(t, body, `class="message trained"`, `class="message context"`, "turns_cut_gold", "think &lt;b&gt;")
	if strings.Contains(body, "I change it.") {
		t.Error("the sample contains the step of the gold patch")
	}
	wantText(t, page(t, s, address+"?gold=1"), "I change it.")
	wantText(t, page(t, s, "/api/v1"+address), `"view":"sft-axolotl"`)
}

func TestMarksAreStoredNextToTheRun(t *testing.T) {
	all := many(2)
	dir := runDir(t, all...)
	s := open(t, "", dir)
	id := all[1].Episode.EpisodeID
	post := func(mark, note, site string) int {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:1/t/1/"+id+"/mark", strings.NewReader(url.Values{"mark": {mark}, "note": {note}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	if code := post("reject", "", "cross-site"); code != http.StatusForbidden {
		t.Errorf("another site got status %d, want 403", code)
	}
	if code := post("maybe", "", "same-origin"); code != http.StatusBadRequest {
		t.Errorf("an unknown mark got status %d, want 400", code)
	}
	if code := post("reject", "guesses <b>", "same-origin"); code != http.StatusSeeOther {
		t.Fatalf("status %d, want 303", code)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "marks.jsonl"))
	if err != nil || !strings.Contains(string(stored), `"episode_id":"`+id+`","mark":"reject","note":"guesses \u003cb\u003e"`) {
		t.Errorf("stored %q, %v", stored, err)
	}
	again := open(t, "", dir) // another viewer reads them
	if got := list(t, again, "?mark=reject"); got.Matched != 1 || got.Episodes[0].EpisodeID != id {
		t.Errorf("marked: %+v", got)
	}
	wantText(t, page(t, again, "/"), "guesses &lt;b&gt;")
	if post("", "", "same-origin"); list(t, s, "?mark=reject").Matched != 0 {
		t.Error("the mark is still there")
	}
}

// The race detector finds what requests share without a lock.
func TestRequestsAtTheSameTime(t *testing.T) {
	all := many(4)
	dir := runDir(t, all[:3]...)
	s := open(t, "", dir)
	episode := "/t/1/" + all[1].Episode.EpisodeID
	var requests sync.WaitGroup
	for _, path := range []string{"/", "/?e=resolved", "/?sort=-n_turns", "/stats/1", episode, episode + "/sample", "/version", "/?e=n_turns+%3E+0"} {
		requests.Go(func() {
			for range 5 {
				if w := get(t, s, path); w.Code != http.StatusOK {
					t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
				}
			}
		})
	}
	requests.Go(func() {
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+episode+"/mark", strings.NewReader("mark=keep"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		s.ServeHTTP(httptest.NewRecorder(), r)
	})
	stage(t, dir, all[3])
	requests.Wait()
	if got := list(t, s, "?mark=keep"); got.Matched != 1 {
		t.Errorf("%d episodes are marked, want 1", got.Matched)
	}
}

// The list follows a run: the viewer looks for new episodes at most once per second.
func TestListFollowsARun(t *testing.T) {
	all := many(3)
	dir := runDir(t, all[:2]...)
	s := open(t, "", dir)
	before := page(t, s, "/version")
	stage(t, dir, all[2])
	for page(t, s, "/version") == before {
		if t.Context().Err() != nil {
			t.Fatal("the version never changed")
		}
	}
	if got := list(t, s, ""); got.Total != 3 {
		t.Errorf("%d episodes, want 3", got.Total)
	}
}

func TestExportLoadsNothing(t *testing.T) {
	s := open(t, "", runDir(t, hostile(), sinktest.Episode("run-a", 2)))
	var out strings.Builder
	if n, err := s.Export(t.Context(), &out, viewer.Export{}); err != nil || n != 2 {
		t.Fatalf("%d episodes, %v", n, err)
	}
	body := out.String()
	wantText(t, body, `href="#e2-top"`, `id="e2-s3"`, `href="#e2-s3"`)
	policy := regexp.MustCompile(`content="default-src 'none';[^"]*"`).FindString(strings.ReplaceAll(body, "&#39;", "'"))
	for _, tag := range []string{"style", `script type="module"`} {
		_, rest, _ := strings.Cut(body, "<"+tag+">")
		text, _, found := strings.Cut(rest, "</"+strings.Fields(tag)[0]+">")
		sum := sha256.Sum256([]byte(text))
		hash := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
		if !found || !strings.Contains(strings.ReplaceAll(policy, "&#43;", "+"), hash) {
			t.Errorf("the policy %s lacks the hash %s of <%s>, which has %d bytes", policy, hash, tag, len(text))
		}
	}
	if n, err := s.Export(t.Context(), &out, viewer.Export{Expr: "n_turns == 6", Episode: "inst-2"}); err != nil || n != 1 {
		t.Errorf("an export of one: %d episodes, %v", n, err)
	}
	if _, err := s.Export(t.Context(), &out, viewer.Export{Expr: "n_turns == 99"}); err == nil || !strings.Contains(err.Error(), "nothing to export") {
		t.Errorf("an empty export: %v", err)
	}
	var huge []sinks.Staged
	for i := range 5 {
		staged := long(1000, 16<<10)
		staged.Episode.EpisodeID = fmt.Sprintf("%032d", i)
		huge = append(huge, staged)
	}
	if _, err := open(t, "", runDir(t, huge...)).Export(t.Context(), &out, viewer.Export{}); err == nil || !strings.Contains(err.Error(), "too much for one file") {
		t.Errorf("an export of 80 MB: %v", err)
	}
}

// The targets: 300 ms of server time for a list of 10,000 episodes, and one second for a page of 500
// steps of 16 KB, in the browser as well.
func BenchmarkPages(b *testing.B) {
	staged := long(500, 16<<10)
	lists := open(b, "", runDir(b, many(10_000)...))
	episodes := open(b, "", runDir(b, staged))
	n := 0
	for name, next := range map[string]func() *httptest.ResponseRecorder{
		"list":   func() *httptest.ResponseRecorder { return get(b, lists, "/") },
		"sorted": func() *httptest.ResponseRecorder { return get(b, lists, "/?sort=-n_turns&page=50") },
		"search": func() *httptest.ResponseRecorder { return get(b, lists, "/?q=inst-3") },
		"filter": func() *httptest.ResponseRecorder {
			n++
			return get(b, lists, "/?e="+url.QueryEscape(fmt.Sprintf("resolved && n_turns > %d", n)))
		},
		"episode": func() *httptest.ResponseRecorder { return get(b, episodes, "/t/1/"+staged.Episode.EpisodeID) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if w := next(); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// A text that is cut in its row says so, and the whole one is a link away.
func TestCutObservationsHaveALinkToTheWholeText(t *testing.T) {
	s := sinktest.Episode("run-a", 1)
	whole := strings.Repeat("0123456789abcde\n", 8<<10)
	at := slices.IndexFunc(s.Steps, func(row schemas.StepRow) bool { return row.Observation != nil })
	row := &s.Steps[at]
	row.Observation, row.ObservationTruncated, row.ObservationBytes = new(whole[:schemas.MaxObservation]), new(true), new(int64(len(whole)))
	row.ObservationSHA256 = new(schemas.HashBytes([]byte(whole)))
	s.Blobs = append(s.Blobs, sinks.Blob{SHA256: *row.ObservationSHA256, Bytes: int64(len(whole)), MediaType: "text/plain", Content: whole})
	v := open(t, "", runDir(t, s))
	address := "/t/1/" + s.Episode.EpisodeID
	link := fmt.Sprintf("%s/s/%d/observation", address, row.StepIndex)
	wantText(t, page(t, v, address), "cut: 64.0 KiB of 128.0 KiB", link)
	if got := page(t, v, link); got != whole {
		t.Errorf("the link gives %d of %d bytes", len(got), len(whole))
	}
}

// A damaged episode of a run is named on the list, and errors have a page that leads back.
func TestDamageIsShown(t *testing.T) {
	dir := runDir(t, sinktest.Episode("run-a", 1), sinktest.Episode("run-a", 2))
	staged, err := filepath.Glob(filepath.Join(dir, "staging", "*", "*"))
	if err != nil || len(staged) != 2 {
		t.Fatalf("%d staged episodes: %v", len(staged), err)
	}
	write(t, staged[0], "x")
	v := open(t, "", dir)
	wantText(t, page(t, v, "/"), "1\u20131 of 1", "is damaged", "1 row of table episodes left out")
	for _, path := range []string{"/t/1/nothing", "/nowhere"} {
		if w := get(t, v, path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `<a href="/" data-key="u">All episodes</a>`) {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}
