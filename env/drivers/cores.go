package drivers

import (
	"math"
	"os/exec"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// turn makes sandboxes begin at different processors.
var turn atomic.Uint32

// startPinned starts cmd on as many of this process's processors as the limit
// rounds up to, which is what everything below it is then bound to. A limit that
// is no less than there are, or below zero, changes nothing.
func startPinned(cmd *exec.Cmd, limit float64) error {
	cores, ok := pick(limit)
	if !ok {
		return cmd.Start()
	}
	// A child is bound as the thread that forks it.
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
			runtime.LockOSThread() // once more than it is unlocked: the thread ends with its goroutine
		}
	}()
	return cmd.Start()
}

// pick chooses the processors; ok is false where there is nothing to choose.
func pick(limit float64) (chosen unix.CPUSet, ok bool) {
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
	from := int(turn.Add(uint32(n)) % uint32(len(numbers)))
	for i := range n {
		chosen.Set(numbers[(from+i)%len(numbers)])
	}
	return chosen, true
}
