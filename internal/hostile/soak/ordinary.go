package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/internal/hostile"
)

// state is the state of the shell and the known answers between two calls.
type state struct {
	word  string            // value of the shell variable "kept"
	dir   string            // the shell's directory, relative to the workspace
	known map[string]string // answers that do not change, by call
}

// limit is the timeout of ordinary calls, far more than they need.
const limit = 60 * time.Second

// ordinaryCalls are the ordinary calls; all entries are equally likely. call makes the call, and
// says what is wrong with the answer ("" if nothing).
var ordinaryCalls = []struct {
	name string
	call func(w *worker, ctx context.Context, r *rand.Rand) (a hostile.Answer, wrong string)
}{
	{"bash", (*worker).echo}, {"bash", (*worker).echo}, {"bash", (*worker).remember}, {"bash", (*worker).fail},
	{"view", (*worker).view}, {"grep", (*worker).grep}, {"edit", (*worker).edit}, {"listdir", (*worker).list},
	{"pdb", (*worker).multiply}, {"pdb", (*worker).multiply}, {"pdb", (*worker).multiply}, {"pdb", (*worker).multiply},
}

// evalEvery is the number of ordinary calls per run of the tests, which is slower because
// it starts several programs.
const evalEvery = 100

// ordinary makes one call with a known answer. It returns whether the sandbox can be used further: the
// call succeeded with the right answer before ctx ended.
func (w *worker) ordinary(ctx context.Context, index int, r *rand.Rand) bool {
	name, call := "eval", (*worker).eval
	if r.IntN(evalEvery) != 0 {
		picked := ordinaryCalls[r.IntN(len(ordinaryCalls))]
		name, call = picked.name, picked.call
	}
	a, wrong := call(w, ctx, r)
	if ctx.Err() != nil {
		return false
	}
	w.soak.tally.addOrdinary(index, name, a, wrong)
	return wrong == "" && a.Err == nil
}

// compare compares an answer with a text byte by byte and describes the difference.
func compare(a hostile.Answer, text string) string {
	if a.Err == nil && a.Text != text {
		return fmt.Sprintf("got %.2000q, want %.2000q", a.Text, text)
	}
	return ""
}

// letters are printable characters, many of them special in a shell.
var letters = []rune("abcXYZ 0189'\"$`\\!#%&*(){}[]<>|;~^?=+-_@:/.,\tßé漢字😀")

func word(r *rand.Rand) string {
	out := make([]rune, 1+r.IntN(40))
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return string(out)
}

func (w *worker) bash(ctx context.Context, command string) hostile.Answer {
	return w.harness.Call(ctx, "bash", map[string]any{"command": command}, limit)
}

func (w *worker) echo(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	text := word(r)
	a := w.bash(ctx, "printf '%s\\n' "+shellwords.Quote(text))
	return a, compare(a, text+"\n")
}

// remember checks that the shell still has the state that the previous call of remember set,
// and sets a new state.
func (w *worker) remember(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	var expected string
	command := ""
	if w.state.word != "" {
		command = `printf '%s|%s\n' "$kept" "${PWD##*/}"; `
		expected = w.state.word + "|" + w.state.dir + "\n"
	}
	w.state.word, w.state.dir = word(r), fmt.Sprintf("dir%d", r.IntN(5))
	root := "/testbed"
	if !w.soak.cfg.Isolated {
		root = `"$ROOT"`
		command = `ROOT=${ROOT:-$PWD}; ` + command
	}
	command += fmt.Sprintf("kept=%s; mkdir -p %s/%s && cd %s/%s && echo moved", shellwords.Quote(w.state.word), root, w.state.dir, root, w.state.dir)
	a := w.bash(ctx, command)
	return a, compare(a, expected+"moved\n")
}

func (w *worker) fail(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	code := 1 + r.IntN(255)
	a := w.bash(ctx, fmt.Sprintf("(exit %d)", code))
	wrong := compare(a, fmt.Sprintf("[exit code %d]\n", code))
	if wrong == "" && a.Err == nil && (a.Exit == nil || *a.Exit != code) {
		wrong = fmt.Sprintf("no exit code %d", code)
	}
	return a, wrong
}

// repeat makes a call whose answer is always the same: the first answer must contain a text,
// and later answers must equal the first.
func (w *worker) repeat(ctx context.Context, tool string, args map[string]any, part string) (hostile.Answer, string) {
	key := tool + fmt.Sprint(args)
	a := w.harness.Call(ctx, tool, args, limit)
	if a.Err != nil {
		return a, ""
	}
	known, found := w.state.known[key]
	if found {
		return a, compare(a, known)
	}
	if !strings.Contains(a.Text, part) || a.IsError {
		return a, fmt.Sprintf("got %.2000q, want %q in it", a.Text, part)
	}
	if w.state.known == nil {
		w.state.known = map[string]string{}
	}
	w.state.known[key] = a.Text
	return a, ""
}

func (w *worker) view(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	first := 1 + r.IntN(40)
	return w.repeat(ctx, "view", map[string]any{"path": "notes.txt", "start": first, "end": first + 5},
		fmt.Sprintf("note %d: nothing here changes\n", first+2))
}

func (w *worker) grep(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	n := 1 + r.IntN(60)
	return w.repeat(ctx, "grep", map[string]any{"pattern": fmt.Sprintf("^note %d:", n), "path": "notes.txt"},
		fmt.Sprintf("note %d: nothing here changes", n))
}

func (w *worker) list(ctx context.Context, _ *rand.Rand) (hostile.Answer, string) {
	a := w.harness.Call(ctx, "listdir", map[string]any{}, limit)
	if a.Err == nil && (!strings.Contains(a.Text, "app.py") || !strings.Contains(a.Text, "notes.txt")) {
		return a, fmt.Sprintf("got %.2000q", a.Text)
	}
	return a, ""
}

// edit replaces a file and reads it back with the tool view.
func (w *worker) edit(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	text := fmt.Sprintf("value = %d  # %s\n", r.Uint64(), strings.ReplaceAll(word(r), "\t", " "))
	a := w.harness.Call(ctx, "edit", map[string]any{"path": "scratch.py", "new_code": text}, limit)
	w.harness.ForgetDebugger() // it must be started again after an edit
	if a.Err != nil || a.IsError {
		return a, fmt.Sprintf("the edit was refused: %.2000q", a.Text)
	}
	viewed := w.harness.Call(ctx, "view", map[string]any{"path": "scratch.py", "line_numbers": false}, limit)
	if viewed.Err != nil {
		return viewed, ""
	}
	if !strings.Contains(viewed.Text, strings.TrimRight(text, "\n")) {
		return a, compare(viewed, text)
	}
	return a, ""
}

// multiply makes the debugger multiply two numbers.
func (w *worker) multiply(ctx context.Context, r *rand.Rand) (hostile.Answer, string) {
	if !w.harness.DebuggerReady() {
		began := time.Now()
		wrong, err := w.harness.StartDebugger(ctx)
		if wrong != "" || err != nil {
			return hostile.Answer{Err: err, Limit: limit, Took: time.Since(began)}, wrong
		}
	}
	return w.harness.Product(ctx, r.Uint32(), r.Uint32())
}

func (w *worker) eval(ctx context.Context, _ *rand.Rand) (hostile.Answer, string) {
	a := w.harness.Call(ctx, "eval", map[string]any{}, limit)
	if a.Err == nil && (!strings.HasSuffix(a.Text, "\n\ntests ran\n") || a.Exit == nil || *a.Exit != 0) {
		return a, fmt.Sprintf("got %.2000q", a.Text)
	}
	return a, ""
}
