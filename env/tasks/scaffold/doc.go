// Package scaffold writes task directories (task.yaml, repo/ and gold.patch) from a checkout, or from a commit of
// its history that fixes a bug.
//
// fix.go splits such a commit into the gold patch and the tests, text.go makes instructions of its message that do
// not reveal the fix, and write.go writes the directory, with a comment at each value that says where it is from.
package scaffold
