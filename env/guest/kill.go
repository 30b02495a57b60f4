package guest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sweepBound  = 900 * time.Millisecond
	plainSweeps = 3 // sweeps before the processes are stopped first
)

// none spares no process.
func none(process) bool { return false }

// sweep kills every process of an accepted tag that spare does not accept, until none is
// left. It first stops a tree that forks faster than it is killed. It returns false if
// some processes are left after sweepBound.
func sweep(accept func(uint64) bool, spare func(process) bool) bool {
	end := time.Now().Add(sweepBound)
	targets := func() []process {
		var out []process
		for _, p := range processes(accept) {
			if !spare(p) {
				out = append(out, p)
			}
		}
		return out
	}
	pause := time.Millisecond
	for round := 0; time.Now().Before(end); round++ {
		found := targets()
		if len(found) == 0 {
			return true
		}
		if round >= plainSweeps {
			found = freeze(found, targets, end)
		}
		for _, p := range found {
			p.signal(unix.SIGKILL)
		}
		time.Sleep(pause) // the kernel tears them down
		pause = min(2*pause, 16*time.Millisecond)
	}
	return len(targets()) == 0
}

// freeze stops processes until no new one appears.
func freeze(found []process, again func() []process, end time.Time) []process {
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
		found = again()
	}
	return found
}

// KillPrograms kills the programs of a guest that was started with this first tag and has ended,
// on hosts where they do not end with its namespace. It returns an error if some survive.
func KillPrograms(first uint64) error {
	if first >= highestTag {
		return nil
	}
	accept := func(tag uint64) bool { return tag <= first && first-tag < manyTags }
	if !sweep(accept, none) {
		return fmt.Errorf("killing the programs of a sandbox: some still run after %s", sweepBound)
	}
	return nil
}

// killer kills programs of this guest. Safe for concurrent use.
type killer struct {
	scopes *scopes
	reaper *reaper
	pauses int // callers of pauseAll that have not resumed; under the reaper's lock
}

// crowd is the number of processes above which all are stopped before they are killed.
const crowd = 24

// pauseAll stops every program of the sandbox if there are more than most processes, with
// one system call, until resume is called. While a fork bomb runs, it leaves the guest
// little processor time and forks meanwhile; to read hundreds of processes and kill them
// takes a long time. Stopped, it takes none, and a fork under way starts over only after
// the stop. pauseAll does nothing if the signal would reach processes of others.
func (k *killer) pauseAll(most int) (resume func()) {
	if !k.scopes.alone || len(processNumbers()) <= most {
		return func() {}
	}
	k.reaper.mu.Lock() // a program about to begin would hold the thread that starts it
	defer k.reaper.mu.Unlock()
	k.pauses++
	_ = unix.Kill(-1, unix.SIGSTOP) // an error means that there is none
	return func() {
		k.reaper.mu.Lock()
		defer k.reaper.mu.Unlock()
		if k.pauses--; k.pauses == 0 {
			_ = unix.Kill(-1, unix.SIGCONT)
		}
	}
}

// kill sweeps and then reaps, so that the dead no longer count as processes. It returns
// false if some processes survive.
func (k *killer) kill(accept func(uint64) bool, spare func(process) bool) bool {
	defer k.pauseAll(crowd)()
	dead := sweep(accept, spare)
	k.reaper.reap()
	return dead
}

// end kills a whole scope, and returns false if some of it survives.
func (k *killer) end(sc *scope) bool { return k.kill(k.scopes.of(sc), none) }
