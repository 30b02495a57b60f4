// Package synth is the factory: it puts bugs into healthy repositories, keeps
// those that the repository's own tests show and that a fix takes away again,
// and writes them as an ordinary task file.
//
//	repository -> survey (tests that always pass, what each of them executes)
//	           -> candidates (sites drawn by seed, compositions of valid ones,
//	              commits taken back, functions that a model wrote)
//	           -> trial of each: applied, run, judged, run again
//	           -> choice (no duplicates, no equivalents, caps) -> release checks
//	           -> issue texts -> tasks.jsonl
//
// Every verdict is a line of the journal in the output directory: a run that is
// stopped goes on there. Which tasks come out, byte for byte, depends on the
// repositories, the settings and a model's answers alone, not on workers or
// interruptions; answers are in the journal, too, and never asked for again.
//
// Each run of a candidate's tests has a sandbox of its own, so that no run sees what
// another one left behind; env/verify then confirms tasks as it does any other patch.
//
// It may import env, env/tasks/check, env/mutate, env/tasks/taskfile, env/trace, env/workspace,
// env/verify, env/workspace, llms and schemas.
package synth
