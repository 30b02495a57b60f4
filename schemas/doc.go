// Package schemas holds the plain records that every stage of tracesmith hands
// to the next: Task, Job, Step, Episode, Verdict. It imports the standard
// library only, so any package may use it.
//
// A Task becomes Jobs; a Job becomes one Episode of Steps; an Episode gets a
// Verdict from a fresh sandbox; all of them become the rows of rows.go.
package schemas
