// Package check decides whether a task is valid: whether its tests fail because of the bug and pass with the gold
// patch, in every run, with any hash seed and in any order; whether only a fix resolves it; whether the debugger
// answers; and whether the sandbox reveals the fix.
//
// Task checks a task (check.go lists the steps). Base checks a repository without bugs, to which bugs will be added.
// Batch checks many tasks and keeps the reports in a Ledger. Package env/verify runs the tests, in separate sandboxes.
package check
