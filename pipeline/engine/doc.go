// Package engine hands out jobs and remembers what became of them. It is NATS
// JetStream, embedded in the process with its files in the run directory, or an
// external cluster reached by URL: one code path for both.
//
// The queue only hands out work and does so at least once. The truth about a
// job is its Record in a key-value bucket, moved by compare-and-swap; a Lease
// is the right to move it. Every step of a running episode is appended to its
// StepLog before the next one starts, fenced so that an owner who lost the
// lease can add nothing. A reconciler, at start-up and every minute, repairs
// what the queue lost, exhausted or forgot.
//
// It imports nats, flock and the standard library, and knows nothing of
// episodes: a job is an id and some bytes.
package engine
