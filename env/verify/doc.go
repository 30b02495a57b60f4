// Package verify decides whether a patch fixes a task, in a sandbox that the agent never used, and
// runs a task's tests in the agent's own sandbox (Eval).
//
// verify.go makes verdicts. candidate.go prepares the tree of a patch (protect.go and repository.go decide
// which files always come from the base, guard.go which files a patch must not contain), run.go and
// channel.go run the tests, judge.go compares the results with the task's lists, and baseline.go
// makes these lists.
//
// Per-test results come over a private channel: hooks in the interpreter (python/) that load before
// program code, get a key from the guest, and write records with a MAC. Program output is never read
// for results.
//
// The patched program runs in the same interpreter as its tests, so the hooks cannot resist
// everything. guard.go lists the layers of defense, and testdata/cheats contains what they notice.
// They cannot notice a program that recognizes the inputs of tests or returns objects that compare
// equal to everything, because no observer can distinguish it from a fix.
package verify
