// Package fleet runs a batch on several machines over a NATS cluster: one process coordinates,
// and workers execute the jobs.
//
// Coordinate plans and queues the jobs, watches them and writes the report. Work executes jobs of
// a run that another process coordinates. The state of the jobs is in the cluster, and the store for
// staging holds the finished episodes. The run directory says which run it is and with which
// settings. So another coordinator that has the run directory can continue the run at any time, and
// other workers can continue the episodes of workers that vanish.
//
// The package builds on pipeline, which executes the same jobs in one process, and on
// pipeline/engine.
package fleet
