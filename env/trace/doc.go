// Package trace observes the tests of a Python program while they run. Cover records which lines
// each test executes. Compare finds where the run of one test begins to differ between two versions
// of the program. Trace also follows the difference to the failure, and tests which values cause it.
// Package env/verify runs the tests and loads the probe (probe*.py) into them. The probe uses
// sys.monitoring if the interpreter has it (Python 3.12 and later), and sys.settrace otherwise.
//
// The output of a probe is limited in size and not trusted, because the program runs in the same
// process and could have written it.
package trace
