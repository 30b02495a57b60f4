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

// maxSilence is how long a batch may make no model call before it counts as hung.
const maxSilence = 10 * time.Minute

// runSingle runs the batch in one process at a time, until a process finishes it.
func (t *trial) runSingle(ctx context.Context) (err error) {
	t.single = &singleProcess{guest: t.cfg.Guest, disk: t.disk}
	t.faultInjector = t.single
	t.server, err = serve(t.cfg, t.plan, t.single, t.report.struck)
	if err != nil {
		return err
	}
	defer t.single.pending.Wait()
	defer t.server.close()
	config, storePlanFile, err := t.writeFiles()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.run), 0o755); err != nil {
		return fmt.Errorf("making the run's directory: %w", err)
	}
	known := map[string]string{}
	clockOffset, nextAhead := time.Duration(0), true // nextAhead: the next Clock fault sets the clock ahead, not back
	for t.report.Starts <= 2*t.cfg.Faults+10 {
		created := creations(storePlanFile)
		cmd := t.cfg.Run(ctx, storePlanFile, clockOffset, "run", "-c", config, "--run-dir", t.run, "--json")
		endedBy, code, stderr, err := t.runProcess(ctx, cmd)
		if err != nil {
			return err
		}
		torn := endedBy[StoreTorn] || t.tornSince(storePlanFile, created)
		if code > 0 && t.report.Starts == 1 && t.server.requestCount() == 0 && !torn {
			return refusal("the run", code, stderr)
		}
		if err := t.checkStaged(ctx, known); err != nil {
			return err
		}
		if endedBy[Disk] {
			if err := t.disk.restore(); err != nil {
				return err
			}
		}
		if clockOffset = 0; endedBy[Clock] {
			clockOffset = time.Hour
			if !nextAhead {
				clockOffset = -clockOffset
			}
			nextAhead = !nextAhead
		}
		if code == 0 {
			return errors.Join(append(t.server.failures, t.countStoreFaults(storePlanFile))...)
		}
		if !exitIsExplained(endedBy, torn, code) {
			t.breach("ended", "a process of the run ended with %d: %s", code, t.report.Ends[len(t.report.Ends)-1])
			return nil
		}
	}
	t.breach("hung", "the run did not finish in %d starts", t.report.Starts)
	return nil
}

// writeFiles writes the files of the batch and returns the paths of the configuration and of
// the plan of store faults, which is "" if the proxy injects these faults.
func (t *trial) writeFiles() (config, plan string, err error) {
	endpoint := ""
	if t.proxy != nil {
		endpoint = t.proxy.URL
	}
	if config, err = t.cfg.writeBatch(t.cfg.Dir, t.server.URL, endpoint); err != nil || t.proxy != nil {
		return config, "", err
	}
	plan = filepath.Join(t.cfg.Dir, "store.json")
	return config, plan, writeJSON(plan, storePlan{Faults: t.plan.store})
}

// exitIsExplained reports whether the faults of a process explain its exit code, which is
// negative for a signal.
func exitIsExplained(endedBy map[Kind]bool, torn bool, code int) bool {
	switch code {
	case -int(syscall.SIGKILL):
		return endedBy[Kill] || endedBy[Clock] || torn
	case 130:
		return endedBy[Drain]
	case 1, 2: // the disk was full
		return endedBy[Disk]
	}
	return false
}

// runProcess runs one process of the batch to its end. It returns the faults that ended the
// process, its exit code and its standard error.
func (t *trial) runProcess(ctx context.Context, cmd *exec.Cmd) (endedBy map[Kind]bool, code int, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, 0, "", fmt.Errorf("starting the run: %w", err)
	}
	t.report.Starts++
	t.pids = append(t.pids, cmd.Process.Pid)
	t.single.begin(cmd.Process, func() {
		t.breach("hung", "a process of the run made no model call for %s", maxSilence)
		_ = cmd.Process.Kill()
	})
	_ = cmd.Wait() // the exit code is read below
	endedBy = t.single.end()
	if err := ctx.Err(); err != nil {
		return nil, 0, "", context.Cause(ctx)
	}
	code = exitCode(cmd)
	t.report.Ends = append(t.report.Ends, describeEnd(code, endedBy, errs.String()))
	if code == 0 {
		err = t.readSummary(out.Bytes())
	}
	return endedBy, code, errs.String(), err
}

// readSummary reads the counts of calls from the summary that a run prints.
func (t *trial) readSummary(out []byte) error {
	var s struct{ Calls Calls }
	if err := json.Unmarshal(out, &s); err != nil {
		return fmt.Errorf("reading the summary: %w", err)
	}
	t.report.Calls = s.Calls
	return nil
}

// tail returns the last n bytes of s at most.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-n):]
}

// creations returns how many objects the processes have tried to create, which they count in the
// file of the plan of store faults. It returns 0 if there is no plan.
func creations(file string) int {
	var p storePlan
	if file == "" {
		return 0
	}
	_ = readJSON(file, &p) // if it cannot be read, the processes report the error
	return p.Created
}

// tornSince reports whether the plan has a StoreTorn fault for a creation since there were before
// creations.
func (t *trial) tornSince(file string, before int) bool {
	if file == "" {
		return false
	}
	now := creations(file)
	return slices.ContainsFunc(t.plan.store, func(f storeFault) bool { return f.Kind == StoreTorn && f.At > before && f.At <= now })
}

// tornCount returns the number of StoreTorn faults that were planned for the creations so far.
func (t *trial) tornCount(file string) (n int) {
	if file == "" {
		return 0
	}
	now := creations(file)
	for _, f := range t.plan.store {
		if f.Kind == StoreTorn && f.At <= now {
			n++
		}
	}
	return n
}

// countStoreFaults adds to the report how many faults of the store have struck.
func (t *trial) countStoreFaults(file string) error {
	if t.proxy != nil {
		return t.proxy.addResults(t.report.struck)
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
