package pipeline_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// The run directory is on a separate file system, an ext4 image on a loop device. To simulate a
// power cut, a test shuts the file system down and discards everything that the kernel has not
// written yet (EXT4_IOC_SHUTDOWN of include/uapi/linux/ext4.h with NOLOGFLUSH). Then it mounts
// the image again and resumes the run.

const (
	ioctlShutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	noLogFlush    = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)

// cutPower shuts down the file system at dir. Later writes there fail.
func cutPower(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, noLogFlush); err != nil {
		return fmt.Errorf("cutting the power of %s: %w", dir, err)
	}
	return nil
}

// requireMount skips the test if it cannot mount an image.
func requireMount(t *testing.T) {
	t.Helper()
	suite.Soak.Require(t)
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: only root can mount a disk to cut the power of")
	}
}

// image is an ext4 file system in a file.
type image struct {
	t         *testing.T
	file, dir string // the image and its mount point
	notes     string // a file outside the image
}

func newImage(t *testing.T) *image {
	t.Helper()
	base := t.TempDir()
	m := &image{t: t, file: filepath.Join(base, "disk.img"), dir: filepath.Join(base, "disk"), notes: filepath.Join(base, "notes")}
	if err := errors.Join(os.WriteFile(m.file, nil, 0o600), os.Truncate(m.file, 192<<20), os.Mkdir(m.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	m.command("mkfs.ext4", "-q", "-F", m.file)
	m.mount()
	t.Cleanup(func() { m.command("umount", "--lazy", m.dir) }) // a process being forked holds the test's open files for a moment
	return m
}

func (m *image) command(name string, args ...string) {
	m.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// mount raises ext4's commit interval of 5 s, so that only syncs write to the disk before the
// power cut, even on a busy machine.
func (m *image) mount() { m.t.Helper(); m.command("mount", "-o", "loop,commit=300", m.file, m.dir) }

// remount unmounts the image and mounts a copy of it, as after a reboot. It mounts a copy because
// the old mount may stay alive for a while in the mount namespaces of other processes.
func (m *image) remount() {
	m.t.Helper()
	m.command("umount", "--lazy", m.dir)
	m.command("cp", "--sparse=always", m.file, m.file+".after")
	m.file += ".after"
	m.mount()
}

func (m *image) harness() *harness {
	h := newHarness(filepath.Join(m.dir, "run"), killTasks)
	h.Config.RunID, h.NotesPath = "fixed", m.notes
	return h
}

// child returns the command of a process that runs the batch on the image. environ is added to
// its environment.
func (m *image) child(environ ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(environ, childDir+"="+filepath.Join(m.dir, "run"), childNotes+"="+m.notes)...)
	return cmd
}

// asked counts each model call in the notes and returns which of them have recorded replies.
func (m *image) asked() (asked map[string]int, recorded map[string]bool) {
	m.t.Helper()
	raw, err := os.ReadFile(m.notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	asked, recorded = map[string]int{}, map[string]bool{}
	last := ""
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "ask "):
			asked[line]++
			last = line
		case line == "at logged-reply\n":
			recorded[last] = true
		}
	}
	return asked, recorded
}

// resume finishes the batch, and checks that it stages the episodes want and does not repeat the
// calls whose replies were recorded before the cut.
func (m *image) resume(want []string, recorded map[string]bool) {
	m.t.Helper()
	h := m.harness()
	rep := h.MustRun(m.t)
	if l := pipelinetest.Ledger(m.t, rep); l.Missing != 0 || l.Reused+l.Outcomes["resolved"] != killTasks {
		m.t.Errorf("%+v", l)
	}
	staged := h.Staged(m.t)
	if got := slices.Sorted(maps.Keys(staged)); !slices.Equal(got, want) {
		m.t.Errorf("episodes %v, want %v", got, want)
	}
	for name, s := range staged {
		if len(s.Steps) != turns+2 || *s.Episode.Outcome != "resolved" {
			m.t.Errorf("%s: %d steps, %s", name, len(s.Steps), *s.Episode.Outcome)
		}
	}
	asked, _ := m.asked()
	repeated := 0
	for line, n := range asked {
		if repeated += n - 1; n > 1 && recorded[line] {
			m.t.Errorf("recorded, and asked %d times: %s", n, line)
		}
	}
	if len(asked) != killTasks*turns || repeated > 1 { // the only worker may have been waiting for one answer
		m.t.Errorf("%d model calls, %d repeated", len(asked), repeated)
	}
	for _, name := range []string{"summary.json", "summary.md", "run.json"} {
		if _, err := os.Stat(filepath.Join(h.Dir, name)); err != nil {
			m.t.Error(err)
		}
	}
}

func checkWasKilled(t *testing.T, cmd *exec.Cmd, err error, out []byte) {
	t.Helper()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

// wantEpisodes returns the names of the objects that an undisturbed run stages.
func wantEpisodes(t *testing.T) []string {
	t.Helper()
	reference := newHarness(filepath.Join(t.TempDir(), "run"), killTasks)
	reference.Config.RunID = "fixed"
	reference.MustRun(t)
	return slices.Sorted(maps.Keys(reference.Staged(t)))
}

// A power cut at any boundary of an episode loses nothing that was acknowledged.
func TestSoakPowerCutAtEveryBoundary(t *testing.T) {
	t.Parallel()
	requireMount(t)
	want := wantEpisodes(t)
	for _, point := range pipelinetest.Points {
		t.Run(point, func(t *testing.T) {
			m := newImage(t)
			cmd := m.child(childPoint+"="+point, childNth+"=2", childCut+"="+m.dir)
			out, err := cmd.CombinedOutput()
			checkWasKilled(t, cmd, err, out)
			m.remount()
			_, recorded := m.asked()
			m.resume(want, recorded)
		})
	}
}

// A power cut at a random moment loses nothing that was acknowledged.
func TestSoakPowerCutAtRandomMoments(t *testing.T) {
	t.Parallel()
	requireMount(t)
	want := wantEpisodes(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		lines, late := 1+rnd.IntN(30), time.Duration(rnd.IntN(20))*time.Millisecond
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := newImage(t)
			cmd := m.child()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for done := false; !done; time.Sleep(time.Millisecond) {
				raw, _ := os.ReadFile(m.notes) // may not exist yet
				done = strings.Count(string(raw), "\n") >= lines
			}
			time.Sleep(late)
			// The process is stopped first, so that it cannot acknowledge anything after the cut.
			if err := errors.Join(cmd.Process.Signal(syscall.SIGSTOP), waitStopped(cmd.Process.Pid)); err != nil {
				t.Fatal(err)
			}
			_, recorded := m.asked()
			if err := errors.Join(cutPower(m.dir), cmd.Process.Kill()); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			m.remount()
			m.resume(want, recorded)
		})
	}
}

// waitStopped waits until every thread of a process has stopped, or it has ended.
func waitStopped(pid int) error {
	for range 30000 {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			return err
		}
		moving := slices.ContainsFunc(files, func(file string) bool {
			raw, err := os.ReadFile(file)
			_, rest, _ := strings.Cut(string(raw), ") ")
			return err == nil && !strings.HasPrefix(rest, "T") && !strings.HasPrefix(rest, "Z")
		})
		if !moving {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("the process did not stop")
}

// Without syncs, a power cut loses recorded replies. This shows that the other tests can detect
// such losses.
func TestSoakPowerCutWithoutSyncsLosesReplies(t *testing.T) {
	t.Parallel()
	requireMount(t)
	m := newImage(t)
	cmd := m.child(childPoint+"=logged-step", childNth+"=4", childCut+"="+m.dir, childLazy+"=1")
	out, err := cmd.CombinedOutput()
	checkWasKilled(t, cmd, err, out)
	m.remount()
	_, recorded := m.asked()
	if len(recorded) == 0 {
		t.Fatal("nothing was recorded before the cut")
	}
	_, err = m.harness().Run(t.Context())
	asked, _ := m.asked()
	for line := range recorded {
		if err == nil && asked[line] < 2 {
			t.Errorf("a reply survived the power cut without a sync: %s", line)
		}
	}
}
