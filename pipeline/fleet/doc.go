// Package fleet runs a batch on several machines over a NATS cluster: one process coordinates,
// and workers execute the jobs.
//
// Coordinate plans and queues the jobs, watches them and writes the report. Work executes jobs of
// a run that another process coordinates. All durable state is in the cluster and in staging. So
// another coordinator can continue the run from the same run directory at any time, and other
// workers can continue the episodes of workers that vanish.
//
// The package builds on pipeline, which executes the same jobs in one process, and on
// pipeline/engine.
package fleet
