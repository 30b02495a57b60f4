package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answer is one line that `tracesmith env` writes, as another program reads it.
type answer struct {
	raw          map[string]json.RawMessage
	OK           bool   `json:"ok"`
	Error        string `json:"error"`
	Observation  string `json:"observation"`
	Observations []struct {
		Source string `json:"source"`
		Text   string `json:"text"`
	} `json:"observations"`
	Score       float64  `json:"score"`
	MaxScore    *float64 `json:"max_score"`
	EvalPassed  *bool    `json:"eval_passed"`
	Terminated  bool     `json:"terminated"`
	Breakpoints []struct {
		File      string  `json:"file"`
		Line      int     `json:"line"`
		Condition *string `json:"condition"`
		Enabled   bool    `json:"enabled"`
		Temporary bool    `json:"temporary"`
	} `json:"breakpoints"`
	Frame *struct {
		File     string `json:"file"`
		Line     int    `json:"line"`
		Function string `json:"function"`
	} `json:"frame"`
	ExitCode   *int    `json:"exit_code"`
	IsError    bool    `json:"is_error"`
	TimedOut   bool    `json:"timed_out"`
	Truncated  bool    `json:"truncated"`
	DurationMS float64 `json:"duration_ms"`
	Tools      []struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
	} `json:"tools"`
	Patch        *string `json:"patch"`
	Resolved     *bool   `json:"resolved"`
	VerifyStatus *string `json:"verify_status"`
}

// alwaysPresent lists the fields that every answer has.
var alwaysPresent = []string{
	"ok", "error", "observation", "observations", "score", "max_score", "eval_passed", "terminated", "breakpoints",
	"frame", "exit_code", "is_error", "timed_out", "truncated", "duration_ms",
}

// envProcess is a running `tracesmith env`.
type envProcess struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd

	outPipe io.Closer // the pipe that out reads
}

// startEnv starts tracesmith env.
func startEnv(t *testing.T, args ...string) *envProcess {
	t.Helper()
	d := &envProcess{t: t, cmd: exec.CommandContext(t.Context(), "tracesmith", append([]string{"env"}, args...)...)}
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out, d.outPipe = bufio.NewReader(out), out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// ask sends one line and reads its answer.
func (d *envProcess) ask(line string) answer {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
	text, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatalf("%s: no answer: %v", line, err)
	}
	var a answer
	if err := errors.Join(json.Unmarshal([]byte(text), &a), json.Unmarshal([]byte(text), &a.raw)); err != nil {
		d.t.Fatalf("%s: %v in %s", line, err, text)
	}
	for _, key := range alwaysPresent {
		if _, ok := a.raw[key]; !ok {
			d.t.Errorf("%s: the answer lacks %q: %s", line, key, text)
		}
	}
	if a.Observations == nil || a.Breakpoints == nil {
		d.t.Errorf("%s: a list is null: %s", line, text)
	}
	return a
}

// must sends one line and fails the test if the answer is not ok.
func (d *envProcess) must(line string) answer {
	d.t.Helper()
	a := d.ask(line)
	if !a.OK || a.Error != "" {
		d.t.Fatalf("%s: %s", line, a.Error)
	}
	return a
}

func (d *envProcess) step(tool, arguments string) answer {
	d.t.Helper()
	return d.must(`{"op":"step","tool":"` + tool + `","arguments":` + arguments + `}`)
}

// end waits for the process to exit after the end of its input or the operation close.
func (d *envProcess) end() {
	d.t.Helper()
	rest, err := io.ReadAll(d.out)
	if err := errors.Join(err, d.cmd.Wait()); err != nil || len(rest) > 0 {
		d.t.Errorf("the process ended with %v and further output %q", err, rest)
	}
}

const (
	goldEdit = `{"path":"stockroom/store.py","old_code":"return dict(self._levels)","new_code":"return {article: dict(shelves) for article, shelves in self._levels.items()}"}`
	badEdit  = `{"path":"stockroom/store.py","old_code":"return dict(self._levels)","new_code":"return {}"}`
)

func TestEnvContract(t *testing.T) {
	t.Parallel()
	d := startEnv(t, "--task", "stockroom")
	testBadLines(t, d)
	a := d.must(`{"op":"reset"}`)
	if !strings.HasPrefix(a.Observation, "The evening report") || len(a.Tools) != 8 || a.Terminated || a.Frame != nil || a.DurationMS <= 0 {
		t.Errorf("reset: %+v", a)
	}
	for _, tool := range a.Tools {
		if tool.Parameters["type"] != "object" {
			t.Errorf("tool %s has parameters %v", tool.Name, tool.Parameters)
		}
	}
	if a := d.must(`{"op":"patch"}`); a.Patch == nil || *a.Patch != "" {
		t.Errorf("patch of nothing: %+v", a)
	}
	testTools(t, d)
	testDebugger(t, d)
	testVerdicts(t, d)
	if a := d.step("submit", `{}`); !a.Terminated {
		t.Errorf("submit: %+v", a)
	}
	if a := d.step("view", `{"path":"stockroom/store.py"}`); !a.Terminated || strings.Contains(a.Observation, "class Stockroom") {
		t.Errorf("a step after the end: %+v", a)
	}
	if a := d.must(`{"op":"close"}`); !a.Terminated {
		t.Errorf("close: %+v", a)
	}
	d.end()
}

// testBadLines checks that other operations fail before reset, and that bad lines are answered
// and skipped.
func testBadLines(t *testing.T, d *envProcess) {
	for line, want := range map[string]string{
		`{"op":"step","tool":"pdb","arguments":{"command":"l"}}`: "step before reset",
		`{"op":"patch"}`:                "patch before reset",
		`{"op":"grade"}`:                "grade before reset",
		`{"op":"fly"}`:                  `unknown op "fly": use reset, step, patch, grade or close`,
		`{}`:                            `unknown op ""`,
		`{"op":"reset"`:                 "not an operation",
		`[1]`:                           "not an operation",
		`reset`:                         "not an operation",
		`{"op":"reset","hard":true}`:    `unknown field "hard"`,
		`{"op":"reset"} {"op":"reset"}`: "one",
	} {
		if a := d.ask(line); a.OK || !strings.Contains(a.Error, want) {
			t.Errorf("%s: ok %v, error %q, want %q", line, a.OK, a.Error, want)
		}
	}
}

// testVerdicts grades a wrong fix, no change and the right fix, with resets between them.
func testVerdicts(t *testing.T, d *envProcess) {
	d.step("edit", badEdit)
	if a := d.must(`{"op":"grade"}`); a.Resolved == nil || *a.Resolved || *a.VerifyStatus != "verified_fail" || !strings.Contains(*a.Patch, "return {}") {
		t.Errorf("grade of a wrong fix: %+v", a)
	}

	// A soft reset keeps the files and clears the breakpoints. A hard reset restores the files.
	a := d.must(`{"op":"reset","soft":true}`)
	if len(a.Breakpoints) != 0 || a.Frame != nil || !strings.HasPrefix(a.Observation, "The evening report") {
		t.Errorf("soft reset: %+v", a)
	}
	if a := d.must(`{"op":"patch"}`); !strings.Contains(*a.Patch, "return {}") {
		t.Errorf("a soft reset lost the change: %q", *a.Patch)
	}
	d.must(`{"op":"reset"}`)
	if a := d.must(`{"op":"patch"}`); *a.Patch != "" {
		t.Errorf("a hard reset kept the change: %q", *a.Patch)
	}

	if a := d.must(`{"op":"grade"}`); *a.Resolved {
		t.Errorf("no change counts as resolved: %+v", a)
	}
	d.step("edit", goldEdit)
	a = d.must(`{"op":"grade"}`)
	if a.Resolved == nil || !*a.Resolved || *a.VerifyStatus != "verified_pass" {
		t.Errorf("grade of the fix: %+v", a)
	}
	for _, key := range []string{"resolved", "verify_status"} {
		if _, found := d.step("eval", `{}`).raw[key]; found {
			t.Errorf("the answer to eval has %q, which only grade may return", key)
		}
	}
	if a := d.step("eval", `{}`); a.EvalPassed == nil || !*a.EvalPassed || a.Score != 1 || a.MaxScore == nil || *a.MaxScore != 1 {
		t.Errorf("eval after the fix: %+v", a)
	}
}

// testTools calls each tool, with valid and with wrong arguments.
func testTools(t *testing.T, d *envProcess) {
	for _, c := range []struct{ tool, arguments, want string }{
		{"listdir", `{}`, "stockroom/"},
		{"view", `{"path":"stockroom/store.py"}`, "class Stockroom"},
		{"grep", `{"pattern":"def levels"}`, "stockroom/store.py"},
		{"bash", `{"command":"pwd; cd stockroom; export X=kept"}`, "/testbed"},
		{"bash", `{"command":"pwd; echo $X; id -u"}`, "/testbed/stockroom\nkept"},
		{"eval", `{}`, "test_report_shows_what_was_picked"},
		{"edit", `{"path":"new.py","new_code":"x = 1\n"}`, "new.py"},
	} {
		a := d.step(c.tool, c.arguments)
		if a.IsError || !strings.Contains(a.Observation, c.want) || a.Observations[0].Source != c.tool {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, a)
		}
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"view", `{"path":"nowhere.py"}`, "nowhere.py"},
		{"view", `{}`, "path"},
		{"view", `{"file":"x"}`, "file"},
		{"view", `"path"`, "object"},
		{"fly", `{}`, "pdb"}, // the error lists the tools
		{"pdb", `{"command":"b nowhere.py:1"}`, "nowhere.py"},
	} {
		if a := d.step(c.tool, c.arguments); !a.IsError || !strings.Contains(a.Observation, c.want) {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, a)
		}
	}
	if a := d.must(`{"op":"step"}`); a.Observation == "" || a.Terminated {
		t.Errorf("a step without a call: %+v", a)
	}
	if a := d.step("bash", `{"command":"exit 3"}`); a.ExitCode == nil || *a.ExitCode != 3 {
		t.Errorf("exit code: %+v", a)
	}
	if a := d.step("bash", `{"command":"seq 1 200000"}`); !a.Truncated || len(a.Observation) > 1<<17 {
		t.Errorf("truncated %v, %d bytes", a.Truncated, len(a.Observation))
	}
	if a := d.step("eval", `{}`); a.EvalPassed == nil || *a.EvalPassed || a.Score != 0 {
		t.Errorf("eval before the fix: %+v", a)
	}
}

// testDebugger checks breakpoints and frames in the answers.
func testDebugger(t *testing.T, d *envProcess) {
	a := d.step("pdb", `{"command":"b stockroom/store.py:43, len(self._levels) > 1"}`)
	if len(a.Breakpoints) != 1 {
		t.Fatalf("breakpoint: %+v", a)
	}
	if b := a.Breakpoints[0]; b.File != "stockroom/store.py" || b.Line != 43 || b.Condition == nil || *b.Condition != "len(self._levels) > 1" || !b.Enabled || b.Temporary {
		t.Errorf("breakpoint: %+v", b)
	}
	a = d.step("pdb", `{"command":"c"}`)
	if a.Frame == nil || a.Frame.File != "stockroom/store.py" || a.Frame.Line != 43 || a.Frame.Function != "levels" {
		t.Errorf("frame: %+v", a)
	}
	if a := d.step("pdb", `{"command":"p sorted(self._levels)"}`); !strings.Contains(a.Observation, "['bolt', 'nut']") || a.IsError {
		t.Errorf("inspection: %+v", a)
	}
	if a := d.step("pdb", `{"command":"up"}`); a.Frame == nil || a.Frame.Function == "levels" {
		t.Errorf("up: %+v", a.Frame)
	}
	// Breakpoints move with an edit above them.
	if a := d.step("edit", `{"path":"stockroom/store.py","start":1,"end":1,"new_code":"\"\"\"One more line.\"\"\"\n\n"}`); len(a.Breakpoints) != 1 || a.Breakpoints[0].Line <= 43 {
		t.Errorf("breakpoints after an edit: %+v", a.Breakpoints)
	}
	// The answer to patch keeps the debugger's state.
	if a := d.must(`{"op":"patch"}`); len(a.Breakpoints) != 1 || !strings.Contains(*a.Patch, "One more line") || a.Observation != "" {
		t.Errorf("patch: %+v", a)
	}
}

// A command that exceeds its limit is ended, and the environment continues.
func TestEnvTimeout(t *testing.T) {
	d := startEnv(t, "--task", "stockroom", "--timeout", "1")
	d.must(`{"op":"reset"}`)
	if a := d.step("bash", `{"command":"sleep 600"}`); !a.TimedOut || a.Terminated {
		t.Errorf("time-out: %+v", a)
	}
	if a := d.step("pdb", `{"command":"import time; time.sleep(600)"}`); !a.TimedOut || a.Terminated {
		t.Errorf("time-out of the debugger: %+v", a)
	}
	if a := d.step("view", `{"path":"stockroom/store.py"}`); a.TimedOut || !strings.Contains(a.Observation, "class Stockroom") {
		t.Errorf("view after the time-outs: %+v", a)
	}
	d.must(`{"op":"close"}`)
	d.end()
}

// env works on any program in a directory; it finds the tests by running them.
func TestEnvAcceptsAnyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"shop.py":      "def total(prices):\n    result = 0\n    for p in prices[1:]:\n        result += p\n    return result\n",
		"test_shop.py": "from shop import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n\ndef test_none():\n    assert total([]) == 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(filepath.Join(dir, "shop.py"))
	if err != nil {
		t.Fatal(err)
	}
	d := startEnv(t, "--path", dir, "--entrypoint", "python3 -m pytest -q", "--instructions", "The sum is too small.", "--tools", "pdb,edit")
	a := d.must(`{"op":"reset"}`)
	var names []string
	for _, tool := range a.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"edit", "pdb"}) || a.Observation != "The sum is too small." {
		t.Errorf("tools %v, %q", names, a.Observation)
	}
	if a := d.step("bash", `{"command":"true"}`); !a.IsError {
		t.Errorf("a tool that is not offered: %+v", a)
	}
	if a := d.step("pdb", `{"command":"b shop.py:3 ;; c"}`); a.Frame == nil || a.Frame.Function != "total" {
		t.Errorf("pdb: %+v", a)
	}
	if a := d.must(`{"op":"grade"}`); a.Resolved == nil || *a.Resolved {
		t.Errorf("before: %+v", a)
	}
	d.step("edit", `{"path":"shop.py","old_code":"prices[1:]","new_code":"prices"}`)
	if a := d.must(`{"op":"grade"}`); !*a.Resolved {
		t.Errorf("after: %+v", a)
	}
	// The end of the input closes the environment. It never writes to the directory itself.
	if err := d.in.Close(); err != nil {
		t.Fatal(err)
	}
	d.end()
	after, err := os.ReadFile(filepath.Join(dir, "shop.py"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the directory was changed: %v\n%s", err, after)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
