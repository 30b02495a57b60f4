package guest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sweepTimeout = 900 * time.Millisecond
	plainSweeps  = 3 // rounds in which sweep kills processes without stopping them first
	emptySweeps  = 3 // rounds in a row in which sweep finds nothing after it has killed something
)

// spareNone is a spare function that spares no process.
func spareNone(process) bool { return false }

// sweep kills all processes whose tag accept accepts, except those that spare accepts, and
// repeats this until none is left. After plainSweeps rounds it stops the processes before it
// kills them, because they fork faster than they die. One round that finds nothing does not prove
// that none is left: a process may fork after the kernel has listed the processes, and end before
// it is read. It returns false if some processes are left after sweepTimeout.
func sweep(accept func(uint64) bool, spare func(process) bool) bool {
	end := time.Now().Add(sweepTimeout)
	targets := func() []process {
		var out []process
		for _, p := range processes(accept) {
			if !spare(p) {
				out = append(out, p)
			}
		}
		return out
	}
	pause, empty := time.Millisecond, 0
	for round := 0; time.Now().Before(end); round++ {
		found := targets()
		if len(found) == 0 {
			if empty++; round == 0 || empty == emptySweeps {
				return true
			}
			continue
		}
		empty = 0
		if round >= plainSweeps {
			found = stopAll(found, targets, end)
		}
		for _, p := range found {
			p.signal(unix.SIGKILL)
		}
		time.Sleep(pause) // the kernel needs time to remove them
		pause = min(2*pause, 16*time.Millisecond)
	}
	return len(targets()) == 0
}

// stopAll stops processes until list returns no new one, and returns those that list returned
// last.
func stopAll(found []process, list func() []process, end time.Time) []process {
	stopped := map[identity]bool{}
	for time.Now().Before(end) {
		fresh := 0
		for _, p := range found {
			if !stopped[p.identity()] {
				stopped[p.identity()] = true
				p.signal(unix.SIGSTOP)
				fresh++
			}
		}
		if fresh == 0 {
			break
		}
		found = list()
	}
	return found
}

// KillPrograms kills the programs of a guest that has ended. It is for guests without their own
// pid namespace, whose programs do not end with them. first is the tag of the guest's first program.
// KillPrograms returns an error if some programs survive.
func KillPrograms(first uint64) error {
	if first >= highestTag {
		return nil
	}
	accept := func(tag uint64) bool { return tag <= first && first-tag < maxTags }
	if !sweep(accept, spareNone) {
		return fmt.Errorf("killing the programs of a sandbox: some still run after %s", sweepTimeout)
	}
	return nil
}

// killer kills programs of this guest. Safe for concurrent use.
type killer struct {
	scopes *scopes
	reaper *reaper
	pauses int // calls of pauseAll that have not been resumed; guarded by reaper.mu
}

// crowdSize is the number of processes above which kill stops all of them first.
const crowdSize = 24

// pauseAll stops every program of the sandbox with one system call, until resume is called. It
// does nothing if there are at most limit processes, or if the signal would reach processes
// outside the sandbox. A fork bomb leaves the guest little processor time, and continues to
// fork while the guest reads and kills hundreds of processes, which takes long. Stopped processes
// use no processor time and do not fork.
func (k *killer) pauseAll(limit int) (resume func()) {
	if !k.scopes.isInit || len(listPIDs()) <= limit {
		return func() {}
	}
	k.reaper.mu.Lock() // a program stopped before its exec would block the thread that starts it
	defer k.reaper.mu.Unlock()
	k.pauses++
	_ = unix.Kill(-1, unix.SIGSTOP) // fails only if there are no processes
	return func() {
		k.reaper.mu.Lock()
		defer k.reaper.mu.Unlock()
		if k.pauses--; k.pauses == 0 {
			_ = unix.Kill(-1, unix.SIGCONT)
		}
	}
}

// kill sweeps, and then reaps the dead processes so that they no longer count toward limits.
// It returns false if some processes survive.
func (k *killer) kill(accept func(uint64) bool, spare func(process) bool) bool {
	defer k.pauseAll(crowdSize)()
	allDead := sweep(accept, spare)
	k.reaper.reap()
	return allDead
}

// killScope kills all processes of a scope. It returns false if some survive.
func (k *killer) killScope(sc *scope) bool { return k.kill(k.scopes.tagFilter(sc), spareNone) }
