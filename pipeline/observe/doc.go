// Package observe shows the progress of a run (Observer) and its result (Report): the
// number of jobs by outcome, effort, problems, data, and the next commands, as text,
// JSON and Markdown.
package observe
