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
// Candidates are judged by a runner that has imported the test runner once and
// forks for each run, in a sandbox per worker; tasks are then confirmed by
// env/verify in fresh sandboxes, as any other patch is.
//
// It may import env, env/check, env/mutate, env/taskfile, env/trace, env/tree,
// env/verify, env/workspace, llms and schemas.
package synth
