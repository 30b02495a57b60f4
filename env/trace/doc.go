// Package trace observes the tests of a Python program while they run: which lines each test
// executes (Cover), and where the run of one test begins to differ between two versions of the
// program (Compare). env/verify makes the runs, with probe.py as their probe. The probe uses
// sys.monitoring if the interpreter has it (3.12), else sys.settrace.
//
// A probe's output comes from the program's own process, so it is bounded and not trusted.
package trace
