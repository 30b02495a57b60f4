// Package hostile is a corpus of adversarial commands with which an agent, or a program
// that it runs, can attack the sandbox, the shell, the debugger and the framing between
// them. A case consists of the surface that it attacks, its limit and the expected answer.
// Harness runs a case and then probes the sandbox: it checks that further commands are
// answered correctly, byte by byte, and that no process of the case is left.
//
// The tests run every case. Package soak runs thousands of them among ordinary calls.
package hostile
