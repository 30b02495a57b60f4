package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// silence is how long a process of the batch may live without a model call before it
// counts as hung.
const silence = 10 * time.Minute

// play runs the batch again and again until a process finishes it.
func (t *trial) play(ctx context.Context) (err error) {
	t.lone = &singleProcess{guest: t.cfg.Guest, disk: t.disk}
	t.processFaults = t.lone
	t.server, err = serve(t.cfg, t.plan, t.lone, t.report.struck)
	if err != nil {
		return err
	}
	defer t.lone.pending.Wait()
	defer t.server.close()
	config, storePlanFile, err := t.lay()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.run), 0o755); err != nil {
		return fmt.Errorf("making the run's directory: %w", err)
	}
	known := map[string]string{}
	clock, ahead := time.Duration(0), true
	for t.report.Starts <= 2*t.cfg.Faults+10 {
		created := t.created(storePlanFile)
		cmd := t.cfg.Run(ctx, storePlanFile, clock, "run", "-c", config, "--run-dir", t.run, "--json")
		ended, code, stderr, err := t.once(ctx, cmd)
		if err != nil {
			return err
		}
		torn := ended[StoreTorn] || t.tore(storePlanFile, created)
		if code > 0 && t.report.Starts == 1 && t.server.questions() == 0 && !torn {
			return refusal("the run", code, stderr)
		}
		if err := t.unchanged(ctx, known); err != nil {
			return err
		}
		if ended[Disk] {
			if err := t.disk.restore(); err != nil {
				return err
			}
		}
		if clock = 0; ended[Clock] {
			clock = time.Hour
			if !ahead {
				clock = -clock
			}
			ahead = !ahead
		}
		if code == 0 {
			return errors.Join(append(t.server.failures, t.countStored(storePlanFile))...)
		}
		if !exitIsExplained(ended, torn, code) {
			t.breach("ended", "a process of the run ended with %d: %s", code, t.report.Ends[len(t.report.Ends)-1])
			return nil
		}
	}
	t.breach("hung", "the run did not finish in %d starts", t.report.Starts)
	return nil
}

// lay writes the batch's files. plan is the file of store faults, "" if the proxy makes
// them.
func (t *trial) lay() (config, plan string, err error) {
	endpoint := ""
	if t.proxy != nil {
		endpoint = t.proxy.URL
	}
	if config, err = t.cfg.lay(t.cfg.Dir, t.server.URL, endpoint); err != nil || t.proxy != nil {
		return config, "", err
	}
	plan = filepath.Join(t.cfg.Dir, "store.json")
	return config, plan, writeJSON(plan, storePlan{Faults: t.plan.store})
}

// exitIsExplained reports whether the faults of a process explain its exit code, which is
// negative for a signal.
func exitIsExplained(ended map[Kind]bool, torn bool, code int) bool {
	switch code {
	case -int(syscall.SIGKILL):
		return ended[Kill] || ended[Clock] || torn
	case 130:
		return ended[Drain]
	case 1, 2: // it met a full disk
		return ended[Disk]
	}
	return false
}

// once runs one process of the batch to its end. stderr is its standard error.
func (t *trial) once(ctx context.Context, cmd *exec.Cmd) (ended map[Kind]bool, code int, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, 0, "", fmt.Errorf("starting the run: %w", err)
	}
	t.report.Starts++
	t.pids = append(t.pids, cmd.Process.Pid)
	t.lone.begin(cmd.Process, func() {
		t.breach("hung", "a process of the run made no model call for %s", silence)
		_ = cmd.Process.Kill()
	})
	_ = cmd.Wait() // how it ended is read below
	ended = t.lone.end()
	if err := ctx.Err(); err != nil {
		return nil, 0, "", context.Cause(ctx)
	}
	code = exitCode(cmd)
	t.report.Ends = append(t.report.Ends, describeEnd(code, ended, errs.String()))
	if code == 0 {
		err = t.summary(out.Bytes())
	}
	return ended, code, errs.String(), err
}

// summary reads the calls from the summary that a run prints.
func (t *trial) summary(out []byte) error {
	var s struct{ Calls Calls }
	if err := json.Unmarshal(out, &s); err != nil {
		return fmt.Errorf("reading the summary: %w", err)
	}
	t.report.Calls = s.Calls
	return nil
}

func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-n):]
}

func (t *trial) created(file string) int {
	var p storePlan
	if file == "" {
		return 0
	}
	_ = readJSON(file, &p) // the processes that use it report an error
	return p.Created
}

// tore reports whether a creation after number before was planned to end its process.
func (t *trial) tore(file string, before int) bool {
	if file == "" {
		return false
	}
	now := t.created(file)
	return slices.ContainsFunc(t.plan.store, func(f storeFault) bool { return f.Kind == StoreTorn && f.At > before && f.At <= now })
}

// torn counts the creations so far that were planned to end their processes.
func (t *trial) torn(file string) (n int) {
	if file == "" {
		return 0
	}
	now := t.created(file)
	for _, f := range t.plan.store {
		if f.Kind == StoreTorn && f.At <= now {
			n++
		}
	}
	return n
}

// countStored counts the faults that have struck the store.
func (t *trial) countStored(file string) error {
	if t.proxy != nil {
		return t.proxy.results(t.report.struck)
	}
	var p storePlan
	if err := readJSON(file, &p); err != nil {
		return err
	}
	for _, f := range p.Faults {
		if f.At <= p.Created {
			t.report.struck[f.Kind]++
		}
	}
	return nil
}
