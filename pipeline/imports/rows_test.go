package imports_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/pipeline/imports"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/sinks"
)

// outcome is the result of importing a file.
type outcome struct {
	episodes []sinks.Staged
	refused  []string
	err      error
}

func importFile(t *testing.T, format, name string, body []byte) outcome {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return importPath(format, path)
}

func importPath(format, path string) (out outcome) {
	for s, err := range imports.Episodes(format, imports.File{Path: path, Name: filepath.Base(path)}, normalise.Config{}) {
		var refused *imports.RowError
		switch {
		case errors.As(err, &refused):
			out.refused = append(out.refused, strings.TrimPrefix(refused.Error(), filepath.Dir(path)+"/"))
		case err != nil:
			out.err = err
		default:
			out.episodes = append(out.episodes, s)
		}
	}
	return out
}

func ids(episodes []sinks.Staged) []string {
	var out []string
	for _, s := range episodes {
		out = append(out, s.Episode.EpisodeID)
	}
	return out
}

func compressed(t *testing.T, name string, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch filepath.Ext(name) {
	case ".gz":
		z := gzip.NewWriter(&out)
		_, _ = z.Write(body)
		_ = z.Close()
	case ".zst":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write(body)
		_ = z.Close()
	default:
		return body
	}
	return out.Bytes()
}

// simple returns a row in the shape of most datasets, with n in its texts.
func simple(n int) string {
	return fmt.Sprintf(`{"instance_id":"acme__tool-%d","messages":[{"role":"user","content":"Fix %d."},{"role":"assistant","content":"Look."},{"role":"user","content":"%d"}]}`, n, n, n)
}

// An invalid row is reported with its number and does not affect the other rows.
func TestInvalidRowsAreRefusedAlone(t *testing.T) {
	lines := simple(1) + "\n\n{\"messages\": 3}\n{\"a\"\n" + simple(2) + "\n" + simple(1)
	for _, name := range []string{"rows.jsonl", "rows.ndjson", "rows.jsonl.gz", "rows.jsonl.zst"} {
		got := importFile(t, "messages", name, compressed(t, name, []byte(lines)))
		if got.err != nil || len(got.episodes) != 3 || ids(got.episodes)[0] != ids(got.episodes)[2] {
			t.Errorf("%s: %v, %v", name, ids(got.episodes), got.err)
		}
		want := []string{name + ", line 3: messages is not a list", name + ", line 4: not valid JSON: unexpected EOF"}
		if diff := cmp.Diff(want, got.refused); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		config := *got.episodes[1].Episode.ConfigJSON
		if e := got.episodes[1].Episode; e.InstanceID != "acme__tool-2" || !strings.Contains(config, `"row":"line 5"`) || !strings.Contains(config, `"file":"`+name+`"`) {
			t.Errorf("%s: %s, %s", name, e.InstanceID, config)
		}
	}
	list := importFile(t, "messages", "rows.json", []byte("["+simple(1)+",\n{\"messages\": 3}, "+simple(2)+", {"))
	if list.err != nil || len(list.episodes) != 2 || len(list.refused) != 2 || !strings.Contains(list.refused[0], "row 2: messages is not a list") || !strings.Contains(list.refused[1], "row 4: line 2: not valid JSON") {
		t.Errorf("%d episodes, %q, %v", len(list.episodes), list.refused, list.err)
	}
	cut := compressed(t, "x.gz", []byte(strings.Repeat(simple(1)+"\n", 3)))
	damaged := importFile(t, "messages", "rows.jsonl.gz", cut[:len(cut)-4])
	if damaged.err != nil || len(damaged.episodes) != 3 || len(damaged.refused) != 1 {
		t.Errorf("damaged file: %d episodes, %q, %v", len(damaged.episodes), damaged.refused, damaged.err)
	}
}

func TestUnusableFilesAreErrors(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a.jsonl", "\n", "contains no rows"},
		{"a.parquet", "PAR1", "not a Parquet file"},
		{"a.jsonl.gz", "x", "cannot be read"},
	} {
		if got := importFile(t, "messages", c.name, []byte(c.body)); got.err == nil || !strings.Contains(got.err.Error(), c.want) || len(got.episodes)+len(got.refused) > 0 {
			t.Errorf("%s: %v", c.name, got.err)
		}
	}
	two := importFile(t, "messages", "a.json", []byte(simple(1)+"\n"+simple(2)))
	if two.err != nil || len(two.refused) != 1 || !strings.Contains(two.refused[0], "name the file .jsonl") {
		t.Errorf("a file of two trajectories: %d episodes, %q, %v", len(two.episodes), two.refused, two.err)
	}
	if _, err := imports.Files("messages", []string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "name the files themselves") {
		t.Error(err)
	}
}

// Of a directory, only files with the names of the format are read, and hidden ones are not. Names do not say where
// the named directory is.
func TestFilesOfDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"runs/b/trajectory.json", "runs/a/trajectory.json.gz", "runs/a/config.json", "runs/.old/trajectory.json", "more/x/trajectory.json", "more/y/own.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	more := filepath.Join(dir, "more")
	files, err := imports.Files("debug-gym", []string{filepath.Join(more, "y/own.json"), filepath.Join(dir, "runs"), filepath.Join(more, "x/trajectory.json"), filepath.Join(more, "x/trajectory.json")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"x/trajectory.json", "y/own.json", "a/trajectory.json.gz", "b/trajectory.json"}, names); diff != "" {
		t.Error(diff)
	}
}

// Rows without an instance ID belong to one instance if they state the same problem.
func TestInstancesOfRowsWithoutID(t *testing.T) {
	row := func(problem, reply string) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, problem, reply)
	}
	got := importFile(t, "messages", "a.jsonl", []byte(row("x", "1")+"\n"+row("x", "2")+"\n"+row("y", "1")))
	if got.err != nil || len(got.episodes) != 3 {
		t.Fatal(got.err, got.refused)
	}
	a, b, c := got.episodes[0].Episode, got.episodes[1].Episode, got.episodes[2].Episode
	if a.InstanceID != b.InstanceID || a.GroupID != b.GroupID || a.EpisodeID == b.EpisodeID || a.InstanceID == c.InstanceID || *a.SplitGroup != *b.SplitGroup {
		t.Errorf("%s %s %s", a.InstanceID, b.InstanceID, c.InstanceID)
	}
}

// In every format, a JSONL file has one trajectory per line. If the format does not name the instance,
// instance_id does.
func TestEveryFormatMayHaveRows(t *testing.T) {
	for format, raw := range samples {
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		named := append([]byte(`{"instance_id":"acme__tool-7",`), line.Bytes()[1:]...)
		got := importFile(t, format, "rows.jsonl", append(append(line.Bytes(), '\n'), named...))
		if got.err != nil || len(got.episodes) != 2 || len(got.refused) > 0 {
			t.Errorf("%s: %d episodes, %q, %v", format, len(got.episodes), got.refused, got.err)
			continue
		}
		if diff := cmp.Diff(transcript(read(t, format, raw).Steps), transcript(got.episodes[0].Steps)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
		if id := got.episodes[1].Episode.InstanceID; id != "acme__tool-7" && (format == "swe-agent" || format == "mini-swe-agent") {
			t.Errorf("%s: instance %s", format, id)
		}
	}
}

// parquetRow is a row in the layout of the dataset SWE-rebench-openhands-trajectories.
type parquetRow struct {
	Instance   string           `parquet:"instance_id"`
	Repo       string           `parquet:"repo"`
	Trajectory []parquetMessage `parquet:"trajectory,list"`
	Tools      string           `parquet:"tools"`
	Resolved   int64            `parquet:"resolved"`
	Score      float64          `parquet:"gen_tests_correct"`
}

type parquetMessage struct {
	Role      string        `parquet:"role"`
	Content   *string       `parquet:"content,optional"`
	ID        *string       `parquet:"tool_call_id,optional"`
	ToolCalls []parquetCall `parquet:"tool_calls,list"`
}

type parquetCall struct {
	ID       string `parquet:"id"`
	Function struct {
		Name      string `parquet:"name"`
		Arguments string `parquet:"arguments"`
	} `parquet:"function"`
}

// nested returns a row with about size bytes, and its JSON.
func nested(t *testing.T, n, size int) (parquetRow, []byte) {
	t.Helper()
	call := parquetCall{ID: "c1"}
	call.Function.Name, call.Function.Arguments = "execute_bash", `{"command": "ls"}`
	row := parquetRow{
		Instance: fmt.Sprintf("acme__tool-%d", n), Repo: "acme/tool", Tools: `[{"type":"function","function":{"name":"execute_bash","parameters":{"type":"object"}}}]`,
		Resolved: int64(n % 2), Score: math.NaN(),
		Trajectory: []parquetMessage{
			{Role: "user", Content: new("Fix it.")}, {Role: "assistant", ToolCalls: []parquetCall{call}},
			{Role: "tool", ID: new("c1"), Content: new(strings.Repeat("a word ", size/7) + "[Command finished with exit code 0]")},
		},
	}
	toolCall := map[string]any{"id": "c1", "function": map[string]any{"name": "execute_bash", "arguments": `{"command": "ls"}`}}
	line, err := json.Marshal(map[string]any{
		"gen_tests_correct": nil, "instance_id": row.Instance, "repo": row.Repo, "tools": row.Tools, "resolved": row.Resolved,
		"trajectory": []any{
			map[string]any{"role": "user", "content": "Fix it.", "tool_calls": []any{}},
			map[string]any{"role": "assistant", "tool_calls": []any{toolCall}},
			map[string]any{"role": "tool", "tool_call_id": "c1", "content": *row.Trajectory[2].Content, "tool_calls": []any{}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return row, line
}

// Importing a dataset from Parquet or from JSONL gives the same episodes, and never holds most of its rows
// in memory.
func TestLargeDatasetsAreStreamed(t *testing.T) {
	const rows, size = 1000, 8_000
	dir := t.TempDir()
	var table, lines bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&table, parquet.Compression(&parquet.Snappy))
	for n := range rows {
		row, line := nested(t, n, size)
		if _, err := w.Write([]parquetRow{row}); err != nil {
			t.Fatal(err)
		}
		if n%100 == 99 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		lines.Write(append(line, '\n'))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name string, body []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	paths := []string{write("rows.parquet", table.Bytes()), write("rows.jsonl", lines.Bytes())}
	table, lines = bytes.Buffer{}, bytes.Buffer{}
	importFile(t, "messages", "first.jsonl", []byte(simple(1))) // loads what all imports share
	var seen [2][]string
	for i, path := range paths {
		before, n := liveBytes(), 0
		for s, err := range imports.Episodes("openhands", imports.File{Path: path, Name: filepath.Base(path)}, normalise.Config{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e := s.Episode; e.InstanceID != fmt.Sprintf("acme__tool-%d", n) || e.Repo != "github.com/acme/tool" || len(s.Steps) != 2 || *s.Steps[1].ExitCode != 0 || *s.Steps[1].ToolCallID != "c1" {
				t.Fatalf("row %d of %s: %+v", n, path, e)
			}
			seen[i] = append(seen[i], s.Episode.EpisodeID)
			if n++; n%250 == 0 {
				if live := liveBytes() - before; live > rows*size/2 {
					t.Errorf("%s: %d bytes are in use after %d rows of %d bytes", path, live, n, size)
				}
			}
		}
		if n != rows {
			t.Errorf("%d rows of %s", n, path)
		}
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
		t.Error(diff)
	}
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// FuzzEpisodes checks that Episodes returns an episode or an error for any file, and never panics.
func FuzzEpisodes(f *testing.F) {
	f.Add("a.jsonl", []byte(simple(1)+"\n"+simple(2)))
	f.Add("a.json", []byte("["+simple(1)+"]"))
	var table bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&table)
	_, _ = w.Write([]parquetRow{{Instance: "a", Trajectory: []parquetMessage{{Role: "assistant", Content: new("x")}}}})
	_ = w.Close()
	f.Add("a.parquet", table.Bytes())
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		path := filepath.Join(t.TempDir(), "a"+filepath.Ext(filepath.Base(name)))
		if err := os.WriteFile(path, body, 0o600); err != nil {
			return // no file can have this name
		}
		got := importPath("openhands", path)
		if got.err == nil && len(got.episodes)+len(got.refused) == 0 {
			t.Error("neither an episode nor an error")
		}
	})
}

// An episode that could not be searched for secrets is left out, and the import goes on. The command of this one
// takes just less work than its length allows; with its quotes escaped, it takes more.
func TestEpisodesThatCannotBeSearchedAreLeftOut(t *testing.T) {
	command := func(filler int) string {
		return strings.Repeat("secret: \"value\"\n", 2<<10) + strings.Repeat("plain text ", filler)
	}
	isWithheld := func(text string) bool {
		r := redact.New(nil)
		r.Text(text)
		return r.Counts()["withheld"] > 0
	}
	least := sort.Search(1<<20, func(filler int) bool { return !isWithheld(command(filler)) })
	arguments, err := json.Marshal(map[string]string{"command": command(least)})
	if err != nil {
		t.Fatal(err)
	}
	if least == 0 || !isWithheld(string(arguments)) {
		t.Fatalf("with %d fillers, the command does not show what it should", least)
	}
	quoted, err := json.Marshal(string(arguments))
	if err != nil {
		t.Fatal(err)
	}
	got := importFile(t, "mini-swe-agent", "a.traj.json", fmt.Appendf(nil, `{"info": {}, "messages": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "t", "type": "function", "function": {"name": "bash", "arguments": %s}}]},
		{"role": "tool", "tool_call_id": "t", "content": "done"}], "trajectory_format": "mini-swe-agent-1.1"}`, quoted))
	if got.err != nil || len(got.episodes) != 0 || len(got.refused) != 1 || !strings.HasPrefix(got.refused[0], "a.traj.json: ") {
		t.Errorf("%d episodes, refused %.200q, error %v", len(got.episodes), got.refused, got.err)
	}
}
