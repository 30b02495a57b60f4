// Package budget enforces the cost limits of a run, its tasks and its episodes. All amounts are in
// USD.
//
// A model call reserves its worst-case cost before it starts, and is settled with its actual cost
// afterwards, so that no limit is exceeded with any number of workers. A Ledger does this within
// one process. The processes of a cluster share one state, which they change by compare-and-swap:
// each worker has a Client, and the process that coordinates the run has a Coordinator. If the
// state and a step log disagree about the cost of an episode, the step log is right.
package budget
