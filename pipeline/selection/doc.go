// Package selection decides which episodes a dataset keeps for training.
//
// A selection is a Recipe (recipe.go): predicates in CEL over the columns of table
// episodes, over steps and over the attempts of a task (program.go); deduplication;
// a choice within each group; caps (narrow.go). Applying it (apply.go) gives the kept
// ids, the reasons of every rejection, and a funnel whose numbers add up. A File
// (file.go) is a saved result, which repeats the same decisions.
package selection
