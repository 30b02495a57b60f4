// Package synth is the bug factory: it injects bugs into healthy repositories, keeps
// the bugs that the repository's own tests detect and a fix removes, and writes them as
// an ordinary task file.
//
//	repository -> survey (tests that always pass, what each of them executes)
//	           -> candidates (sites drawn by seed, compositions of valid ones,
//	              reverted commits, functions that a model wrote)
//	           -> trial of each: applied, run, judged, run again
//	           -> choice (no duplicates, no equivalents, caps) -> release checks
//	           -> issue texts -> tasks.jsonl
//
// Every verdict is a line of the journal in the output directory, where a stopped run
// resumes. The tasks depend, byte for byte, only on the repositories, the settings and
// the model's answers, not on workers or interruptions. The answers are in the journal
// as well and are never requested twice.
//
// Each run of a candidate's tests has its own sandbox, so that runs cannot influence
// each other. Finally, env/verify confirms tasks as it does any other patch.
//
// factory.go has the types of a run: the factory with its repositories, its job queue
// and its workers. run.go runs the phases of a repository: survey.go and draw.go, then
// apply.go, judge.go and measure.go for each candidate, compose.go, choose.go and
// release.go. task.go writes the tasks.
package synth
