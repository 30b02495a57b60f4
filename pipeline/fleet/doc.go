// Package fleet runs a batch on several machines over a NATS cluster: one process coordinates,
// and workers execute the jobs.
//
// Coordinate plans and queues the jobs, watches them and writes the report. Work executes jobs of
// a run that another process coordinates. What must last is in the cluster and in staging, so that
// another coordinator can continue with the same run directory at any time, and other workers with
// the episodes of those that vanish.
//
// It builds on pipeline, which executes the same jobs in one process, and on pipeline/engine.
package fleet
