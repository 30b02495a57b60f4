// Package selection decides which episodes a dataset keeps for training.
//
// A selection is a Recipe (recipe.go). It consists of predicates, which are CEL expressions
// over the columns of the table episodes, the steps and the attempts of a task (program.go),
// of deduplication, of a choice within each group, and of caps (narrow.go). Applying a
// recipe (apply.go) gives the IDs of the kept episodes, the reasons for each rejection, and
// a funnel with the number of episodes after each step. A File (file.go) is a saved result.
// Applying it repeats the same decisions.
package selection
