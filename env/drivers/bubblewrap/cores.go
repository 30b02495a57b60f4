package bubblewrap

import (
	"math"
	"os/exec"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// startPinned starts cmd so that it and its descendants run on only some of this process's processors, as many as limit
// rounded up. If there are no more than that, or limit is negative, cmd may use all processors.
func startPinned(cmd *exec.Cmd, limit float64) error {
	cores, ok := chooseCores(limit)
	if !ok {
		return cmd.Start()
	}
	// A child inherits the processors of the thread that forks it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, &cores); err != nil {
		return err
	}
	defer func() {
		if unix.SchedSetaffinity(0, &all) != nil {
			runtime.LockOSThread() // a second lock, so that the thread ends with its goroutine
		}
	}()
	return cmd.Start()
}

// nextCore is the index of the first processor of the next sandbox, which spreads sandboxes over the processors.
var nextCore atomic.Uint32

// chooseCores returns the processors of a sandbox. ok is false if it may use all of them.
func chooseCores(limit float64) (chosen unix.CPUSet, ok bool) {
	var all unix.CPUSet
	n := int(math.Ceil(limit))
	if n <= 0 || unix.SchedGetaffinity(0, &all) != nil || all.Count() <= n {
		return chosen, false
	}
	var numbers []int
	for i := range len(all) * 64 {
		if all.IsSet(i) {
			numbers = append(numbers, i)
		}
	}
	from := int(nextCore.Add(uint32(n)) % uint32(len(numbers)))
	for i := range n {
		chosen.Set(numbers[(from+i)%len(numbers)])
	}
	return chosen, true
}
