// Package check decides whether a task is valid: whether its tests fail because of the bug and
// pass with the gold patch, in every run, under any hash seed and in any order; whether only a
// fix resolves it; whether the debugger answers; and whether the sandbox reveals the fix.
//
// Task checks a task (check.go lists the steps). Base checks a healthy repository to which bugs
// will be added. env/verify runs all tests, in sandboxes of their own.
package check
