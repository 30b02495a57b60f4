// Package metrics computes what rows say about behaviour: the kind of every
// action, repeats, the twelve filter criteria, leaks, and how an episode lies
// to the gold patch. Everything is a pure function of rows, patches and
// transcripts; nothing here decides an outcome.
//
// It imports schemas and the patch parser only, and nothing of agents/oracle.
package metrics
