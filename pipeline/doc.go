// Package pipeline runs a batch: plan -> rollout -> grade -> normalise -> stage.
//
// Run derives the jobs of the selected tasks, skips those that are staged, and
// has workers take the rest from the engine. A worker makes every step durable
// before the next one, grades the patch in a fresh sandbox, normalises the
// episode and stages it create-only; only then is the job done. Kill it
// anywhere: the next Run with the same directory goes on from the step log.
//
// It imports contracts (schemas, env, agents, llms, sinks) and its own
// sub-packages, never an implementation: what is concrete comes in Deps.
package pipeline
