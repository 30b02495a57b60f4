// Package synth is the bug factory: it injects bugs into healthy repositories, keeps
// those that the repositories' own tests detect, and writes them to an ordinary task
// file.
//
//	repository -> survey (which tests always pass, and what each of them executes)
//	           -> candidates (mutations drawn by seed, combinations of valid mutations,
//	              reverted commits, functions that a model wrote)
//	           -> trial of each candidate: apply it, run its tests, judge, run again
//	           -> choice (no duplicates, no equivalents, caps) -> release checks
//	           -> issue texts -> tasks.jsonl
//
// The journal in the output directory records every result, so that a stopped run can
// resume. The tasks depend, byte for byte, only on the repositories, the settings and
// the model's answers, not on the number of workers or on interruptions. The journal
// also records the answers, so that the model is never asked the same question twice.
//
// Each candidate is tried in new sandboxes, so that candidates cannot influence each
// other. Before a task is released, env/verify must accept its gold patch, and must see the same tests
// fail in one buggy tree of the repository as the factory (docs/decisions/factory-candidates.md).
//
// factory.go has the types of a run: the factory with its repositories, its job queue
// and its workers. run.go plans the phases of a repository: survey.go, parts.go and
// draw.go, then apply.go, judge.go and measure.go for each candidate, compose.go,
// choose.go, release.go and forge.go. task.go writes the tasks.
package synth
