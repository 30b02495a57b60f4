// Package schemas holds the plain records that the stages of tracesmith pass to
// each other: Task, Job, Step, Episode, Verdict. It imports only the standard
// library, so any package can use it.
//
// A Task becomes Jobs; a Job becomes one Episode of Steps; an Episode gets a
// Verdict from a fresh sandbox; together they become the rows of rows.go.
package schemas
