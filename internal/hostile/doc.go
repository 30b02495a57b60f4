// Package hostile is a corpus of adversarial commands: what an agent, or a
// program it runs, can do to the sandbox, the shell, the debugger and the
// framing between them. Each case is data: the door it comes in by, its limit,
// and what the answer must hold. Place plays a case and then asks what must
// hold after each: the next command is answered correctly, to the byte, and no
// process of the case is left.
//
// Tests play every case; package soak plays them by the thousand among ordinary
// calls.
//
// It imports env, schemas and env/workspace.
package hostile
