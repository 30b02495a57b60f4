// Package observe shows a run while it goes on (Observer) and what became of
// it (Report): a ledger that adds up, outcome, effort, data, and what to do
// next, as text, JSON and Markdown.
//
// It imports schemas, sinks, the standard library, and x/sys for the width of a
// terminal.
package observe
