// Package pipeline runs a batch: plan -> rollout -> grade -> normalise -> stage.
//
// Run executes the jobs of the selected tasks that are not staged yet, in this process. A job
// makes every step durable before the next one, grades the patch in a fresh sandbox, normalizes
// the episode and stages it without overwriting anything. Only then is the job done. If the
// process is killed, the next Run with the same directory continues from the step logs. Package
// fleet does the same with workers on other machines. Both use a Batch, which is one invocation
// of a run, and an Executor, which executes jobs.
//
// The package imports only contracts (schemas, env, agents, llms, sinks) and its own
// sub-packages. The caller passes the implementations in Deps.
package pipeline
