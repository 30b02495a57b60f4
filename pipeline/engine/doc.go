// Package engine is a job queue with durable job records on NATS JetStream, either
// embedded in the process with its files in the run directory, or on an external
// cluster. Both use the same code.
//
// The queue delivers jobs at least once. The state of a job is its Record in a
// key-value bucket, changed by compare-and-swap; only the holder of the job's Lease
// may change it. A worker appends every step of a running episode to the job's
// StepLog before the next step starts; the log is fenced, so an owner that lost its
// lease cannot append. A reconciler repairs the queue at start-up and every minute.
//
// The package knows nothing about episodes: a job is an id and some bytes.
package engine
