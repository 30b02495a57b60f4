// Package budget keeps the money of a run: limits, reservations and settlements, in USD.
//
// A call reserves its worst case before it is made and settles afterwards, so that no limit
// is passed, whatever the number of workers. A Ledger does this within one process. The
// processes of a cluster agree on one shared state, which they change by compare-and-swap:
// each worker has a Client, and the process that coordinates the run has a Coordinator. Step
// logs remain the truth about what was paid.
package budget
