// Package verify decides whether a patch fixes a task, in a sandbox nobody has
// touched, and runs a task's tests in the agent's own sandbox (Eval).
//
// Per-test results come over a private channel: hooks in the interpreter
// (python/) that load before program code, take a key out of the environment,
// and write records with a MAC. Program output is never read for results.
//
// The patched program runs in the same interpreter as its tests, so the hooks
// cannot be proof against everything: see the list in guard.go and the corpus
// in testdata/cheats for what is noticed. Not noticed, because no observer
// inside or outside can tell it from a fix: a program that recognises the tests'
// inputs, or returns objects that compare equal to everything.
//
// It may import env, env/workspace and schemas.
package verify
