package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// tinyEnv is a fake environment that counts its steps.
type tinyEnv struct {
	steps int
	down  bool // the next operation fails
}

var errDown = errors.New("sandbox died")

func (e *tinyEnv) info(text string) (env.Info, error) {
	if e.down {
		return env.Info{}, errDown
	}
	o := schemas.Observation{Source: "tiny", Text: text}
	return env.Info{Observation: o, Observations: []schemas.Observation{o}, State: schemas.EnvState{
		Breakpoints: []schemas.Breakpoint{{File: "a.py", Line: 3, Enabled: true, Condition: "x"}, {File: "b.py", Line: 4, Temporary: true}},
		Frame:       &schemas.Frame{File: "a.py", Line: 3, Function: "f"},
	}}, nil
}

func (e *tinyEnv) Reset(_ context.Context, soft bool) (env.Info, error) {
	text := "hard"
	if soft {
		text = "soft"
	}
	info, err := e.info(text)
	info.Tools = []schemas.ToolSchema{{Name: "tiny", Parameters: json.RawMessage(`{"type":"object"}`)}}
	return info, err
}

func (e *tinyEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return e.Step(ctx, call)
}

func (e *tinyEnv) Step(_ context.Context, c schemas.ToolCall) (env.Info, error) {
	e.steps++
	if c.Name == "" || c.ID == "" || !json.Valid(c.Arguments) {
		return env.Info{}, errors.New("a broken call reached the environment")
	}
	return e.info(c.ID + " " + c.Name + string(c.Arguments))
}

func (e *tinyEnv) NoCall(context.Context) (env.Info, error) { return e.info("no call") }

func (e *tinyEnv) Patch(context.Context) ([]byte, string, error) {
	if e.down {
		return nil, "", errDown
	}
	return []byte("diff\n"), "tree", nil
}

func (*tinyEnv) Key() schemas.EnvKey         { return schemas.EnvKey{} }
func (*tinyEnv) Close(context.Context) error { return nil }

func newLoop(e env.Env) *envLoop {
	clock := 0.0
	return &envLoop{
		env: e, now: func() float64 { clock += 0.1; return clock },
		grade: func(_ context.Context, patch []byte, sha string) (schemas.Verdict, error) {
			ok := string(patch) == "diff\n" && sha == "tree"
			return schemas.Verdict{Resolved: &ok, Status: schemas.VerifiedPass}, nil
		},
	}
}

// serve runs the loop over lines and decodes the answers.
func serve(t *testing.T, l *envLoop, in string) []answer {
	t.Helper()
	var out bytes.Buffer
	if err := l.serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var got []answer
	for dec := json.NewDecoder(&out); ; {
		var a answer
		err := dec.Decode(&a)
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a)
	}
}

func TestEnvLoop(t *testing.T) {
	got := serve(t, newLoop(&tinyEnv{}), strings.Join([]string{
		`{"op":"reset","soft":true}`, // nothing to keep yet
		``,
		`{"op":"step","tool":"x","arguments":{"a":1}}`,
		`{"op":"step","tool":"x","id":"mine"}`,
		`{"op":"step"}`,
		`{"op":"grade"}`,
		`{"op":"reset","soft":true}`,
		`{"op":"close"}`,
		`{"op":"step","tool":"x"}`,
	}, "\n"))
	want := []string{"hard", `call_1 x{"a":1}`, "mine x{}", "no call", "", "soft", ""}
	if len(got) != len(want) {
		t.Fatalf("%d answers", len(got))
	}
	for i, a := range got {
		if !a.OK || a.Observation != want[i] || a.DurationMS != 0.1 || len(a.Breakpoints) != 2 || a.Frame == nil {
			t.Errorf("answer %d: %+v", i, a)
		}
		if (a.Resolved != nil) != (i == 4) || (len(a.Tools) > 0) != (i == 0 || i == 5) || (a.Patch != nil) != (i == 4) {
			t.Errorf("answer %d has the wrong fields: %+v", i, a)
		}
	}
	if b := got[0].Breakpoints; *b[0].Condition != "x" || b[1].Condition != nil || !b[1].Temporary || b[1].Enabled {
		t.Errorf("breakpoints %+v", b)
	}
}

// Failures are reported in answers. After a failed reset, only reset works.
func TestEnvLoopReportsFailures(t *testing.T) {
	e := &tinyEnv{down: true}
	l := newLoop(e)
	for _, a := range serve(t, l, "{\"op\":\"reset\"}\n{\"op\":\"step\",\"tool\":\"x\"}\n") {
		if a.OK || a.Error == "" || a.Breakpoints == nil || a.Observations == nil {
			t.Errorf("%+v", a)
		}
	}
	if e.steps != 0 {
		t.Error("a step ran although the reset had failed")
	}
	e.down = false
	got := serve(t, l, "{\"op\":\"reset\"}\n")
	e.down = true
	got = append(got, serve(t, l, "{\"op\":\"step\",\"tool\":\"x\"}\n{\"op\":\"patch\"}\n{\"op\":\"grade\"}\n")...)
	for i, a := range got {
		if a.OK != (i == 0) || i > 0 && a.Error != errDown.Error() {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
}

// A line that is too long is skipped, and the next one is served.
func TestEnvLoopSkipsLongLines(t *testing.T) {
	got := serve(t, newLoop(&tinyEnv{}), `{"op":"`+strings.Repeat("x", maxOpLine)+"\"}\n{\"op\":\"reset\"}")
	if len(got) != 2 || got[0].OK || !strings.Contains(got[0].Error, "shorter than") || !got[1].OK {
		t.Errorf("%d answers: %+v", len(got), got)
	}
}

// A signal ends the loop although the input stays open.
func TestEnvLoopStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	in, w := io.Pipe()
	defer w.Close()
	done := make(chan error)
	go func() { done <- newLoop(&tinyEnv{}).serve(ctx, in, io.Discard) }()
	if _, err := io.WriteString(w, "{\"op\":\"reset\"}\n"); err != nil {
		t.Fatal(err)
	}
	cancel(signalErrors[syscall.SIGTERM])
	if err := <-done; !errors.Is(err, signalErrors[syscall.SIGTERM]) {
		t.Errorf("%v", err)
	}
}

// Each non-empty line before close has exactly one answer with every field, and no broken
// call reaches the environment.
func FuzzEnvLoop(f *testing.F) {
	for _, seed := range []string{
		`{"op":"reset"}`, `{"op":"step","tool":"pdb","arguments":{"command":"n"}}`, `{"op":"step","arguments":"x","tool":"y"}`,
		`{"op":"patch"}`, `{"op":"grade"}`, `{"op":"close"}`, `{"op":7}`, `[]`, `{"op":"reset"}{`, `{"op":"step","tool":"x","arguments":null}`, "\x00\xff",
	} {
		f.Add([]byte("{\"op\":\"reset\"}\n"+seed+"\n"), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, up bool) {
		var out bytes.Buffer
		if err := newLoop(&tinyEnv{down: !up}).serve(t.Context(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range bytes.Lines(in) {
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		answers := 0
		for line := range bytes.Lines(out.Bytes()) {
			answers++
			var a map[string]json.RawMessage
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, key := range []string{"ok", "error", "observations", "breakpoints", "frame", "duration_ms"} {
				if _, ok := a[key]; !ok {
					t.Fatalf("no %q in %s", key, line)
				}
			}
			if bytes.Contains(line, []byte("a broken call")) {
				t.Fatalf("%s", line)
			}
		}
		if answers > lines || answers < lines && !bytes.Contains(in, []byte("close")) && !bytes.Contains(in, []byte(`\u`)) {
			t.Fatalf("%d answers to %d lines", answers, lines)
		}
	})
}

// Errors use the terms of JSON, ids may be numbers, a byte order mark is skipped, and
// answers repeat the ids of operations.
func TestEnvLoopExplainsInvalidLines(t *testing.T) {
	for line, want := range map[string]string{
		`{"op":7}`:                           `"op" must be a string, not a number`,
		`{"op":"reset","soft":"yes"}`:        `"soft" must be true or false, not a string`,
		`{"op":"step","tool":["bash"]}`:      `"tool" must be a string, not an array`,
		`["reset"]`:                          "it is an array",
		`"reset"`:                            "it is a string",
		`{"op":"reset","hard":true}`:         `unknown field "hard", there are op, soft, tool, arguments and id`,
		"\xef\xbb\xbf{\"op\":\"step\"}":      "step before reset",
		`{"op":"step","tool":"x","id":"a"`:   "unexpected EOF",
		`{"op":"patch","id":null,"tool":"x"`: "unexpected EOF",
	} {
		got := serve(t, newLoop(&tinyEnv{}), line)
		if len(got) != 1 || got[0].OK || !strings.Contains(got[0].Error, want) || strings.Contains(got[0].Error, "Go ") || strings.Contains(got[0].Error, "json:") {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	got := serve(t, newLoop(&tinyEnv{}), "\xef\xbb\xbf{\"op\":\"reset\",\"id\":1}\r\n{\"op\":\"step\",\"tool\":\"x\",\"id\":7}\n{\"op\":\"fly\",\"id\":\"b\"}\n{\"op\":\"step\",\"tool\":\"x\"}")
	want := []string{"1", "7", `"b"`, ""}
	for i, a := range got {
		if string(a.ID) != want[i] || a.OK != (i != 2) {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	if len(got) != 4 || got[1].Observation != "7 x{}" {
		t.Errorf("%+v", got)
	}
}

// Arguments may be a string with the text of an object, as model servers send them. Any other
// string reaches the environment as a model's invalid arguments.
func TestEnvLoopTakesArgumentsAsText(t *testing.T) {
	for given, want := range map[string]schemas.ToolCall{
		`{"a":1}`:      {Arguments: []byte(`{"a":1}`)},
		`"{\"a\": 1}"`: {Arguments: []byte(`{"a": 1}`), Raw: `{"a": 1}`},
		`""`:           {Arguments: []byte(`{}`)},
		`"{\"a\": "`:   {Arguments: []byte(`{}`), Raw: `{"a": `, Invalid: "unexpected end of JSON input"},
		`[1]`:          {Arguments: []byte(`[1]`)},
		`null`:         {Arguments: []byte(`null`)},
	} {
		want.ID, want.Name = "call_3", "x"
		if d := cmp.Diff(want, op{Tool: "x", Arguments: []byte(given)}.call(3)); d != "" {
			t.Errorf("%s: %s", given, d)
		}
	}
}
