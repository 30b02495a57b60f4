// Package verify decides whether a patch fixes a task, in a sandbox that the agent never used, and
// runs a task's tests in the agent's own sandbox (Eval).
//
// verify.go makes verdicts. candidate.go prepares the tree of a patch: protect.go and repository.go
// decide which files always come from the base tree, and guard.go which files a patch must not
// contain. run.go and channel.go run the tests, and compile.go compiles the hooks. baseline.go lists the
// tests that a fix must make pass and those that it must not break, and assess.go compares the results
// with these lists.
//
// Hooks in the interpreter (python/) report the result of each test. They load before the program's
// code, get a key from the guest (tracesmith's process in the sandbox), and write records with a MAC.
// Results are never read from the program's output.
//
// The patched program runs in the same interpreter as its tests, so the hooks cannot detect every
// manipulation. guard.go lists the layers of defense, and testdata/cheats contains manipulations that
// they detect. They cannot detect a program that recognizes the inputs of tests or returns objects
// that compare equal to everything, because it behaves like a fix.
package verify
