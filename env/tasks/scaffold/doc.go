// Package scaffold writes task directories (task.yaml, repo/ and gold.patch) from a checkout, or from a commit of
// its history that fixes a bug.
//
// fix.go splits such a commit into the gold patch and the tests. text.go turns its message into instructions that do
// not reveal the fix. write.go writes the directory; comments in task.yaml say where the values come from.
package scaffold
