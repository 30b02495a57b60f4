package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// probe makes calls with known answers and returns the wrong ones. An error means that the
// harness is unusable.
func (p *Harness) probe(ctx context.Context, c Case) (misframed []string, err error) {
	word := fmt.Sprintf("probe-%x", rand.Uint64())
	a := p.Call(ctx, "bash", map[string]any{"command": "echo " + word}, DefaultLimit)
	// The answer may also contain the output of a background job, or report a shell that has ended.
	if a.Err != nil {
		return nil, a.Err
	}
	if want := word + "\n"; a.Text != want && !(c.Leaves && strings.Contains(a.Text, want)) || a.TimedOut || a.IsError {
		misframed = append(misframed, fmt.Sprintf("bash answered %s, want %q", shorten(a.Text), want))
	}
	if late := a.Late(); late > 0 {
		misframed = append(misframed, fmt.Sprintf("bash answered %v late", late))
	}
	if c.Surface == Pdb {
		wrong, err := p.StartDebugger(ctx)
		if err != nil {
			return misframed, err
		}
		if wrong == "" {
			a, wrong = p.Product(ctx, rand.Uint32(), rand.Uint32())
		}
		if wrong != "" {
			misframed = append(misframed, wrong)
		}
		if a.Err != nil {
			return misframed, a.Err
		}
	}
	out, err := p.run(ctx, "echo "+word)
	if err == nil && out != word+"\n" {
		misframed = append(misframed, fmt.Sprintf("the sandbox answered %q, want %q", out, word+"\n"))
	}
	return misframed, err
}

// StartDebugger starts the ordinary program in the debugger, which stops it at its start, and
// records how the debugger's answers end. wrong describes a wrong answer.
func (p *Harness) StartDebugger(ctx context.Context) (wrong string, err error) {
	const marker = "'stopped here'"
	args := map[string]any{"command": "p " + marker, "entrypoint": Entrypoint}
	a := p.Call(ctx, "pdb", args, DefaultLimit)
	if a.Err == nil && a.Exit != nil { // the first answer after a kill only reports the end
		a = p.Call(ctx, "pdb", args, DefaultLimit)
	}
	if a.Err != nil {
		return "", a.Err
	}
	_, suffix, found := strings.Cut(a.Text, marker+"\n")
	if !found || a.TimedOut || a.IsError {
		return fmt.Sprintf("pdb answered %s", shorten(a.Text)), nil
	}
	p.suffix = suffix
	return "", nil
}

// DebuggerReady reports whether the debugger has stopped in the ordinary program.
func (p *Harness) DebuggerReady() bool { return p.suffix != "" }

// ForgetDebugger makes DebuggerReady return false. Callers use it after an edit of a file,
// because the debugger then restarts the program.
func (p *Harness) ForgetDebugger() { p.suffix = "" }

// Product asks the debugger, which must be stopped in the ordinary program, for the product
// of x and y. wrong describes a wrong answer.
func (p *Harness) Product(ctx context.Context, x, y uint32) (a Answer, wrong string) {
	a = p.Call(ctx, "pdb", map[string]any{"command": fmt.Sprintf("p %d * %d", x, y)}, DefaultLimit)
	if want := fmt.Sprintf("%d\n%s", uint64(x)*uint64(y), p.suffix); a.Err == nil && a.Text != want {
		wrong = fmt.Sprintf("pdb answered %s, want %s", shorten(a.Text), shorten(want))
	}
	return a, wrong
}

// run executes a script without a tool. The script must exit with 0.
func (p *Harness) run(ctx context.Context, script string) (string, error) {
	r, err := p.Sandbox().Run(ctx, env.Command{Args: []string{"bash", "-c", script}, Dir: "/", Timeout: DefaultLimit})
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 || r.TimedOut {
		return "", fmt.Errorf("script %q: exit code %d, timed out %v: %q", script, r.ExitCode, r.TimedOut, r.Output)
	}
	return string(r.Output), nil
}

// listing prints one line per process with its state and arguments, and its own process id
// at the end. A process of which only the first thread has ended is not listed as a zombie.
// It starts no further process.
const listing = `for d in /proc/[0-9]*; do
  { IFS= read -r s <"$d/stat" && mapfile -d '' a <"$d/cmdline"; } 2>/dev/null || continue
  s=${s##*) } t=("$d"/task/*)
  [[ $s = Z* && ${#t[@]} -gt 1 ]] && s=threads
  printf '%s %s %q\n' "${d#/proc/}" "${s%% *}" "${a[*]}"
done; echo $$`

// leftovers waits up to five seconds for the processes of a case to end and returns those
// that belong neither to the guest, nor to the shell, nor to the debugger.
func (p *Harness) leftovers(ctx context.Context) (left []string, err error) {
	for end := time.Now().Add(5 * time.Second); ; {
		out, err := p.run(ctx, listing)
		if err != nil {
			return nil, err
		}
		if left = unexpected(out); len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unexpected returns the lines of a listing that are not processes of the environment.
func unexpected(out string) []string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	self := lines[len(lines)-1]
	known := map[string]int{"bash --noprofile --norc": 1, "app.py": 1}
	return slices.DeleteFunc(lines[:len(lines)-1], func(l string) bool {
		f := strings.SplitN(l, " ", 3)
		if len(f) < 3 || f[0] == "1" || f[0] == self || f[1] == "Z" || f[1] == "X" {
			return true
		}
		args := strings.ReplaceAll(f[2], `\ `, " ")
		for pattern := range known {
			if known[pattern] > 0 && strings.Contains(args, pattern) {
				known[pattern]--
				return true
			}
		}
		return false
	})
}

// sweep kills all processes that a case left running, including the shell and the debugger.
func (p *Harness) sweep(ctx context.Context) error {
	p.suffix = ""
	if !p.Isolated {
		return p.Reset(ctx)
	}
	_, err := p.Sandbox().Run(ctx, env.Command{Args: []string{"bash", "-c", "kill -9 -1"}, Dir: "/", Timeout: DefaultLimit})
	if err == nil { // the next command returns their last output
		err = p.Call(ctx, "bash", map[string]any{"command": "true"}, DefaultLimit).Err
	}
	return err
}
