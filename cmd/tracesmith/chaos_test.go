package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An interrupted trial ends its processes, unmounts its disk and removes its directory. If it
// is interrupted twice, it names the directory, which then stays. Even a killed trial leaves no
// processes.
func TestEndedTrialLeavesNoProcess(t *testing.T) {
	for name, c := range map[string]struct {
		args       []string
		interrupts int
	}{
		"interrupted":        {nil, 1},
		"interrupted twice":  {nil, 2},
		"fleet, interrupted": {[]string{"--fleet"}, 1},
		"fleet, killed":      {[]string{"--fleet"}, 0}, // without --fleet, the disk would stay mounted
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp, out := t.TempDir(), &output{}
			cmd := exec.CommandContext(t.Context(), "tracesmith-lab", append([]string{"chaos", "--episodes", "1000", "--faults", "1"}, c.args...)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, "the run has begun", func() bool {
				onTempDir, _ := filepath.Glob(filepath.Join(temp, "*/run/run.json"))
				onDisk, _ := filepath.Glob(filepath.Join(temp, "*/disk/run/run.json"))
				return len(onTempDir)+len(onDisk) > 0
			})
			code := 130
			for n := range c.interrupts {
				if n > 0 {
					wait(t, "it ends", func() bool { return strings.Contains(out.String(), "stopping: ending the trial's processes") })
				}
				_ = cmd.Process.Signal(syscall.SIGINT) // this fails if the trial has ended
			}
			if c.interrupts == 0 {
				code = -1
				_ = cmd.Process.Kill()
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d:\n%s", got, code, out)
			}
			wait(t, "no process is left", func() bool { return len(processesMentioning(t, temp)) == 0 })
			mounts := mustRead(t, "/proc/self/mounts")
			if strings.Contains(mounts, temp) {
				t.Errorf("a disk is left:\n%s", mounts)
			}
			left, err := os.ReadDir(temp)
			if err != nil {
				t.Fatal(err)
			}
			if len(left) > 0 && c.interrupts == 1 || len(left) > 0 && c.interrupts == 2 && !strings.Contains(out.String(), "the trial's directory stays: "+filepath.Join(temp, left[0].Name())+"\n") {
				t.Errorf("%v is left:\n%s", left, out)
			}
		})
	}
}

// processesMentioning lists the processes that have a text in their arguments or environment.
func processesMentioning(t *testing.T, text string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		args, _ := os.ReadFile(dir + "/cmdline") // the process may have ended
		environ, _ := os.ReadFile(dir + "/environ")
		if bytes.Contains(args, []byte(text)) || bytes.Contains(environ, []byte(text)) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}
