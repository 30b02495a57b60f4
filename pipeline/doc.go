// Package pipeline runs a batch: plan -> rollout -> grade -> normalise -> stage.
//
// Run executes the jobs of the selected tasks that are not staged yet, in this process. A job
// makes every step durable before the next one, grades the patch in a fresh sandbox,
// normalises the episode and stages it create-only; only then is it done. If the process is
// killed, the next Run with the same directory continues from the step logs. Package fleet
// does the same with workers on other machines, from the same parts: a Batch is one invocation
// of a run, and an Executor executes jobs.
//
// The package imports contracts (schemas, env, agents, llms, sinks) and its own sub-packages,
// never an implementation: Deps has those.
package pipeline
