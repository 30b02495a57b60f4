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

// probe asks the commands that follow every case: each must be answered
// correctly. An error is the place's.
func (p *Place) probe(ctx context.Context, c Case) (misframed []string, err error) {
	word := fmt.Sprintf("probe-%x", rand.Uint64())
	a := p.Call(ctx, "bash", map[string]any{"command": "echo " + word}, DefaultLimit)
	// A background job may speak at any time, and a shell that ended says so.
	if a.Err != nil {
		return nil, a.Err
	}
	if want := word + "\n"; a.Text != want && !(c.Leaves && strings.Contains(a.Text, want)) || a.TimedOut || a.IsError {
		misframed = append(misframed, fmt.Sprintf("bash answered %s, want %q", short(a.Text), want))
	}
	if late := a.Late(); late > 0 {
		misframed = append(misframed, fmt.Sprintf("bash answered %v late", late))
	}
	if c.Door == Pdb {
		wrong, err := p.Stand(ctx)
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

// Stand brings the debugger to the start of the ordinary program and learns what
// its answers end with from then on. Wrong says what is not right.
func (p *Place) Stand(ctx context.Context) (wrong string, err error) {
	const marker = "'stands here'"
	args := map[string]any{"command": "p " + marker, "entrypoint": Entrypoint}
	a := p.Call(ctx, "pdb", args, DefaultLimit)
	if a.Err == nil && a.Exit != nil { // it was killed meanwhile, and says so once
		a = p.Call(ctx, "pdb", args, DefaultLimit)
	}
	if a.Err != nil {
		return "", a.Err
	}
	_, suffix, found := strings.Cut(a.Text, marker+"\n")
	if !found || a.TimedOut || a.IsError {
		return fmt.Sprintf("pdb answered %s", short(a.Text)), nil
	}
	p.suffix = suffix
	return "", nil
}

// Standing says whether the debugger is known to wait in the ordinary program.
func (p *Place) Standing() bool { return p.suffix != "" }

// Stale says that a file was edited: the program will be started again.
func (p *Place) Stale() { p.suffix = "" }

// Product asks the debugger, which must be standing, for a product. Wrong says
// how the answer differs from what it must be.
func (p *Place) Product(ctx context.Context, x, y uint32) (a Answer, wrong string) {
	a = p.Call(ctx, "pdb", map[string]any{"command": fmt.Sprintf("p %d * %d", x, y)}, DefaultLimit)
	if want := fmt.Sprintf("%d\n%s", uint64(x)*uint64(y), p.suffix); a.Err == nil && a.Text != want {
		wrong = fmt.Sprintf("pdb answered %s, want %s", short(a.Text), short(want))
	}
	return a, wrong
}

// run executes a script beside the tools and wants exit code 0.
func (p *Place) run(ctx context.Context, script string) (string, error) {
	r, err := p.Sandbox().Run(ctx, env.Command{Args: []string{"bash", "-c", script}, Dir: "/", Timeout: DefaultLimit})
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 || r.TimedOut {
		return "", fmt.Errorf("script %q: exit code %d, timed out %v: %q", script, r.ExitCode, r.TimedOut, r.Output)
	}
	return string(r.Output), nil
}

// listing prints one line for each process: its state and arguments. One whose
// first thread alone has ended is no zombie. It starts nothing, so that it lists
// only itself besides.
const listing = `for d in /proc/[0-9]*; do
  { IFS= read -r s <"$d/stat" && mapfile -d '' a <"$d/cmdline"; } 2>/dev/null || continue
  s=${s##*) } t=("$d"/task/*)
  [[ $s = Z* && ${#t[@]} -gt 1 ]] && s=threads
  printf '%s %s %q\n' "${d#/proc/}" "${s%% *}" "${a[*]}"
done; echo $$`

// leftovers lists the processes that belong neither to the guest nor to the
// shell nor to the standing debugger, once they had time to vanish.
func (p *Place) leftovers(ctx context.Context) (left []string, err error) {
	for end := time.Now().Add(5 * time.Second); ; {
		out, err := p.run(ctx, listing)
		if err != nil {
			return nil, err
		}
		if left = strangers(out); len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// strangers are the lines of a listing that no part of the place accounts for.
func strangers(out string) []string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	self := lines[len(lines)-1]
	known := map[string]int{"bash --noprofile --norc": 1, "app.py": 1}
	return slices.DeleteFunc(lines[:len(lines)-1], func(l string) bool {
		f := strings.SplitN(l, " ", 3)
		if len(f) < 3 || f[0] == "1" || f[0] == self || f[1] == "Z" || f[1] == "X" {
			return true
		}
		args := strings.ReplaceAll(f[2], `\ `, " ")
		for sign := range known {
			if known[sign] > 0 && strings.Contains(args, sign) {
				known[sign]--
				return true
			}
		}
		return false
	})
}

// sweep ends what a case left running, the shell and the debugger among it.
func (p *Place) sweep(ctx context.Context) error {
	p.suffix = ""
	if !p.Isolated {
		return p.Reset(ctx)
	}
	_, err := p.Sandbox().Run(ctx, env.Command{Args: []string{"bash", "-c", "kill -9 -1"}, Dir: "/", Timeout: DefaultLimit})
	if err == nil { // what they said last comes with the next command
		err = p.Call(ctx, "bash", map[string]any{"command": "true"}, DefaultLimit).Err
	}
	return err
}
