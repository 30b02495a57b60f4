package pdb

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestEachPythonEveryThreadStops(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" odd.py workers")
		b.do("b at_work")
		seen := map[string]bool{}
		for range 3 {
			r := b.do("c")
			b.has(r, "Breakpoint 1 hit in thread worker-")
			_, name, _ := strings.Cut(r.Text, "in thread ")
			seen[strings.SplitN(name, ".", 2)[0]] = true
			b.at(b.do("n"), "odd.py", r.Frame.Line+1)
			b.has(b.do("p m == n * 2"), "True")
		}
		if len(seen) != 3 {
			t.Errorf("stopped in %v", seen)
		}
		b.has(b.do("c"), "all joined", "exit code 0")

		// A thread that began before the breakpoint was set, and one that is never joined.
		b = open(t, py+" odd.py lasting_worker")
		b.do("b lasting_worker ;; c ;; n ;; n ;; n")
		b.do("b waits")
		b.do("cl 1 ;; b " + b.line("odd.py", "after = 1"))
		b.has(b.do("c"), "Breakpoint 3 hit in thread", "after = 1")
		b.has(b.do("c"), "worker is done 1", "exit code 0")
		b = open(t, py+" odd.py unjoined")
		b.do("b at_work")
		b.has(b.do("c"), "Breakpoint 1 hit in thread")
		b.has(b.do("c"), "exit code 0")

		// A command in a thread can be interrupted.
		b = open(t, py+" odd.py workers")
		b.do("tbreak at_work ;; c")
		r := b.withLongGrace().doWithin("p [i for i in iter(int, 1)]", shortTimeout)
		b.has(r, "timed out")
		b.do("p 1")
	})
}

// threadPrograms are programs of testdata/shop/threads.py.
var threadPrograms = map[string]struct {
	hits   int    // of a breakpoint at the first line of job
	output string // at the end of the program
}{
	"pool":               {6, "pool [1, 3, 5, 7, 9, 11]"},
	"queues":             {6, "queues [1, 3, 5, 7, 9, 11]"},
	"step_over_a_wait":   {1, "waited 1"},
	"daemons":            {1, "daemons 11"},
	"daemon_at_a_prompt": {1, "main is done"},
	"locks":              {4, "locks True"},
	"timers":             {1, "timers"},
	"job_after_job":      {20, "after 20"},
}

func TestEachPythonEachHitOfEachThreadStops(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "python3 main.py")
		for name, want := range threadPrograms {
			if err := b.Reset(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			b.doUnder(py+" threads.py "+name, "b job")
			var text strings.Builder
			for hits := 0; ; hits++ {
				r := b.do("c")
				text.WriteString(r.Text)
				if r.ExitCode != nil {
					if hits != want.hits || !strings.Contains(text.String(), want.output) {
						t.Errorf("%s: %d hits, want %d; want output %q", name, hits, want.hits, want.output)
					}
					break
				}
				b.has(r, "Breakpoint 1 hit")
			}
		}
	})
}

func TestEachPythonStepsAndBreakpointsOfOtherThreads(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		// A step over a call that waits for a thread which hits a breakpoint.
		b := open(t, py+" threads.py step_over_a_wait")
		b.do("b job ;; b step_over_a_wait")
		b.has(b.do("c"), "Breakpoint 2 hit.\n")
		r := b.do("n")
		for range 2 {
			if !strings.Contains(r.Text, "in thread other") { // the third step, or an earlier one if a step takes long
				r = b.do("n")
			}
		}
		b.has(r, "Breakpoint 1 hit in thread other.")
		b.at(b.do("n"), "threads.py", r.Frame.Line+1)
		b.do("cl")
		b.has(b.do("c"), "waited 1", "exit code 0")

		// A step at the end of a thread does not lead into Python's own code.
		b = open(t, py+" threads.py step_over_a_wait")
		b.do("b " + b.line("threads.py", "return m") + " ;; c ;; b " + b.line("threads.py", "waited = True"))
		b.has(b.do("n"), "--Return--", "-> return m")
		r = b.do("n")
		b.has(r, "(Thread other has ended.)\nBreakpoint 2 hit.\n")
		b.has(b.do("c"), "waited 1", "exit code 0")

		// Nor does a step at the exception that ends a thread. The other threads continue.
		b = open(t, py+" threads.py deaths")
		b.has(b.do("b fails ;; b exits ;; c"), "Breakpoint 1 hit in thread dying.")
		r = b.do("n ;; n ;; s")
		b.has(r, "KeyError: 3", "(Thread dying has ended.)", "Exception in thread dying", "Breakpoint 2 hit in thread dying.")
		b.has(b.do("n ;; n ;; r"), "SystemExit: 3", "(Thread dying has ended.)", "main lives", "exit code 0")

		// A daemon thread can be stepped to its end, although the main thread has ended.
		b = open(t, py+" threads.py daemon_at_a_prompt")
		b.has(b.do("b job ;; c ;; n ;; p m"), "Breakpoint 1 hit in thread left.", "14\n")
		b.has(b.do("n ;; n ;; n"), "(Thread left has ended.)", "exit code 0")

		// A thread that has stopped before still stops after the main thread has ended.
		b = open(t, py+" threads.py outlives_main")
		b.has(b.do("b job ;; c ;; p n"), "Breakpoint 1 hit in thread last.", "1\n")
		b.has(b.do("c ;; p n ;; n"), "Breakpoint 1 hit in thread last.", "2\n", "-> m += 1")
		b.has(b.do("c"), "exit code 0")

		b = open(t, py+" threads.py own_calls")
		b.has(b.do("c"), "(This is thread Thread-")
		b.has(b.do("n"), "--Return--")
		b.hasNot(b.do("p n"), "This is thread")
		b.has(b.do("n"), "(Thread Thread-", "has ended.)\n(This is thread Thread-")
		b.has(b.do("c ;; c"), "(This is thread Thread-", "own calls", "exit code 0")
	})
}

// With any steps in any threads and any breakpoints, each command is answered and the program ends
// by itself.
func TestEachPythonThreadsSteppedAtRandom(t *testing.T) {
	names := slices.Sorted(maps.Keys(threadPrograms))
	eachPython(t, func(t *testing.T, py string) {
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, 0))
			name := names[random.IntN(len(names))]
			b := open(t, py+" threads.py "+name)
			b.do("b job ;; b " + b.line("threads.py", "m += 1") + " ;; b " + name)
			output, ended := "", false
			for i := 0; i < 60 && !ended; i++ {
				command := []string{"n", "n", "s", "r", "c", "unt", "p threading.current_thread().name", "w", "u", "d"}[random.IntN(10)]
				r := b.try(command)
				output += r.Text
				ended = r.ExitCode != nil
				if r.TimedOut || r.Frame == nil {
					t.Fatalf("%s, seed %d: %q was not answered:\n%s", name, seed, command, r.Text)
				}
			}
			if !ended {
				r := b.do("cl ;; c")
				output += r.Text
			}
			if !strings.Contains(output, threadPrograms[name].output) || !strings.Contains(output, "exit code 0") {
				t.Errorf("%s, seed %d: did not end well", name, seed)
			}
		}
	})
}
