package views_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/sinks"
)

type atifFile struct {
	Steps []struct {
		ID        int    `json:"step_id"`
		Source    string `json:"source"`
		Message   string `json:"message"`
		Reasoning string `json:"reasoning_content"`
		LLMCalls  *int   `json:"llm_call_count"`
		Calls     []struct {
			ID        string          `json:"tool_call_id"`
			Name      string          `json:"function_name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"tool_calls"`
		Observation *struct {
			Results []struct {
				Call    string `json:"source_call_id"`
				Content string `json:"content"`
			} `json:"results"`
		} `json:"observation"`
	} `json:"steps"`
}

func readATIF(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var file atifFile
		if err := json.Unmarshal(r.Body, &file); err != nil {
			t.Fatal(err)
		}
		for i, s := range file.Steps {
			if s.ID != i+1 || s.Source != "agent" && s.Calls != nil {
				t.Errorf("step %d: %+v", i, s)
			}
			ids := map[string]bool{"": true}
			for _, c := range s.Calls {
				ids[c.ID] = true
				out = append(out, callString(t, c.Name, c.Arguments))
			}
			if s.Observation == nil {
				continue
			}
			for _, r := range s.Observation.Results {
				if !ids[r.Call] {
					t.Errorf("step %d answers %q, which it does not call", i, r.Call)
				}
			}
		}
	}
	return out
}

func readSTS(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		for i, line := range bytes.Split(bytes.TrimSpace(r.Body), []byte("\n")) {
			var m struct {
				Type    string
				Message struct {
					ToolCalls []readCall `json:"toolCalls"`
				}
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			if (m.Type == "session") != (i == 0) {
				t.Errorf("line %d is a %s", i, m.Type)
			}
			for _, c := range m.Message.ToolCalls {
				out = append(out, callString(t, c.Function.Name, arguments(t, c.Function.Arguments)))
			}
		}
	}
	return out
}

func readADP(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var row struct {
			Content []struct {
				Class    string `json:"class_"`
				Function string
				Kwargs   json.RawMessage
				CallID   string `json:"tool_call_id"`
			}
		}
		decode(t, r, &row)
		for i, c := range row.Content {
			if c.Class != "api_action" {
				continue
			}
			if next := row.Content[i+1]; next.Class != "text_observation" || next.CallID != c.CallID {
				t.Errorf("%s is not answered by what follows it", c.CallID)
			}
			out = append(out, callString(t, c.Function, c.Kwargs))
		}
	}
	return out
}

func readDebugGym(t *testing.T, rows []sinks.Row) []string {
	var out []string
	for _, r := range rows {
		var file struct {
			Log []struct {
				StepID int `json:"step_id"`
				Action *struct {
					Name      string
					Arguments json.RawMessage
				}
				Pairs []struct {
					Prompt *[]any
					Usage  map[string]*int64 `json:"token_usage"`
				} `json:"prompt_response_pairs"`
			}
		}
		if err := json.Unmarshal(r.Body, &file); err != nil {
			t.Fatal(err)
		}
		for i, s := range file.Log {
			if s.StepID != i || (s.Action == nil) != (i == 0) {
				t.Errorf("step %d is %+v", i, s)
			}
			if i > 0 && (len(s.Pairs) != 1 || s.Pairs[0].Prompt == nil || s.Pairs[0].Usage["prompt"] == nil || s.Pairs[0].Usage["response"] == nil) {
				t.Errorf("step %d cannot be replayed: %+v", i, s.Pairs) // scripts/replay.py asks for each of these
			}
			if s.Action != nil && s.Action.Name != "empty_tool_response" {
				out = append(out, callString(t, s.Action.Name, s.Action.Arguments))
			}
		}
	}
	return out
}

// debug-gym's SFT viewer reads seven keys; the others identify the episode.
func TestDebugGymSFTHasTheViewersKeys(t *testing.T) {
	rows, _ := render(t, "debug-gym-sft", sinks.ViewOptions{AllowGold: true, Count: words}, shortEpisode(1))
	var keys []string
	for k := range rows[0] {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "#tokens episode_id instance_id messages problem repo resolved run_id satisfied_criteria split tools truncated" {
		t.Error(got)
	}
	if list, ok := rows[0]["satisfied_criteria"].([]any); !ok || len(list) != 0 {
		t.Errorf("criteria %v: a list that is not empty is taken for success", rows[0]["satisfied_criteria"])
	}
}

// If the outcome is unknown, debug-gym's success is false and the notes count it.
func TestDebugGymSuccessNeedsAVerdict(t *testing.T) {
	in := shortEpisode(1)
	in.Episode.Resolved = nil
	rows, notes := rowsOf(t, "debug-gym-json", sinks.ViewOptions{}, in)
	if !bytes.Contains(rows[0].Body, []byte(`"success": false`)) || notes["success_not_known"] != 1 {
		t.Errorf("notes %v", notes)
	}
}

// ATIF allows neither reasoning nor metrics in steps without a model call. A reply from a
// cache has both, but no call count.
func TestATIFStepsWithoutAModelCall(t *testing.T) {
	in := shortEpisode(1)
	for i := range in.Steps {
		in.Steps[i].LLMCallCount, in.Steps[i].PromptTokens = new(int32(0)), new(int64(5))
	}
	rows, _ := rowsOf(t, "atif", sinks.ViewOptions{}, in)
	if body := string(rows[0].Body); strings.Contains(body, `"reasoning_content"`) || strings.Contains(body, `"metrics"`) || !strings.Contains(body, `"reasoning"`) {
		t.Error(body)
	}
	in.Episode.Policy = "model"
	rows, _ = rowsOf(t, "atif", sinks.ViewOptions{}, in)
	if body := string(rows[0].Body); !strings.Contains(body, `"reasoning_content"`) || !strings.Contains(body, `"metrics"`) || strings.Contains(body, "llm_call_count") {
		t.Error(body)
	}
	if _, err := sinks.Views.Build("atif", map[string]any{"version": "2"}, sinks.ViewOptions{}); err == nil || !strings.Contains(err.Error(), "1.7 or 1.8") {
		t.Error(err)
	}
}

// An empty patch is exported: the agent changed nothing. A patch that is not known is left out.
func TestATIFTellsEmptyPatchesFromUnknownOnes(t *testing.T) {
	for _, patch := range []*string{new(""), nil} {
		in := shortEpisode(1)
		in.Episode.Patch = patch
		rows, _ := rowsOf(t, "atif", sinks.ViewOptions{AllowGold: true}, in)
		if exported := bytes.Contains(rows[0].Body, []byte(`"patch": ""`)); exported != (patch != nil) {
			t.Errorf("patch known: %v, exported: %v", patch != nil, exported)
		}
	}
}

// testdata/atif.schema.json follows RFC 0001, but knows only messages that are texts. It allows no unknown keys, and
// calls, reasoning and metrics only in steps of the sources that may have them.
func TestATIFFollowsTheRFC(t *testing.T) {
	raw, err := os.ReadFile("testdata/atif.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	rules, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	cached := shortEpisode(1)
	for i := range cached.Steps {
		cached.Steps[i].LLMCallCount, cached.Steps[i].PromptTokens, cached.Steps[i].IsCopiedContext = new(int32(0)), new(int64(5)), new(true)
	}
	for _, version := range []string{"1.7", "1.8"} {
		for _, in := range []sinks.Trajectory{shortEpisode(1), sinktest.Episode("run", 1).Trajectory(), sinktest.Phased("run", 2).Trajectory(), cached} {
			v, err := sinks.Views.Build("atif", map[string]any{"version": version}, sinks.ViewOptions{AllowGold: true})
			if err != nil {
				t.Fatal(err)
			}
			rows, _, err := v.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			var file map[string]any
			if err := json.Unmarshal(rows[0].Body, &file); err != nil {
				t.Fatal(err)
			}
			if err := rules.Validate(file); err != nil {
				t.Errorf("version %s: %v", version, err)
			}
			file["steps"].([]any)[0].(map[string]any)["reasoning_content"] = "reasoning of a system message"
			if rules.Validate(file) == nil {
				t.Error("the schema accepts reasoning in a system message")
			}
		}
	}
}

// Each phase is a separate file if a format allows only one conversation, and ids of
// imported episodes cannot lead out of the output directory.
func TestRecordsStayInTheOutputDirectory(t *testing.T) {
	in := sinktest.Phased("run", 1).Trajectory()
	in.Episode.InstanceID, in.Episode.EpisodeID = "../../etc", "a/b"
	for kind, want := range map[string][]string{
		"atif": {"a_b.json"}, "hf-sts": {"a_b-seek.jsonl", "a_b-solve.jsonl"},
		"debug-gym-json": {"a_b-seek/.._.._etc/trajectory.json", "a_b-solve/.._.._etc/trajectory.json"},
	} {
		rows, _ := rowsOf(t, kind, sinks.ViewOptions{}, in)
		var got []string
		for _, r := range rows {
			got = append(got, r.File)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// The Python package atif accepts the rows of both versions of the format. TRACESMITH_TEST_ATIF is a
// Python that has this package; make interop sets it.
func TestATIFPackageAccepts(t *testing.T) {
	python := suite.ATIF.Require(t)
	for _, version := range []string{"1.7", "1.8"} {
		for _, in := range []sinks.Trajectory{shortEpisode(1), sinktest.Phased("run", 2).Trajectory()} {
			v, err := sinks.Views.Build("atif", map[string]any{"version": version}, sinks.ViewOptions{AllowGold: true})
			if err != nil {
				t.Fatal(err)
			}
			rows, _, err := v.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "x.json")
			if err := os.WriteFile(path, rows[0].Body, 0o600); err != nil {
				t.Fatal(err)
			}
			script := "import sys\nfrom atif import Trajectory\nTrajectory.model_validate_json(open(sys.argv[1]).read())"
			if out, err := exec.CommandContext(t.Context(), python, "-c", script, path).CombinedOutput(); err != nil {
				t.Errorf("version %s: %s", version, out)
			}
		}
	}
}
