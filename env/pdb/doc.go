// Package pdb implements the environment's Python debugger.
//
// A Debugger starts a new Python process for each run of the program. It keeps what must outlive
// the process: the breakpoints and the entrypoint (debuggee.go). It starts the interpreter that
// the entrypoint names (entrypoint.go) and sends it the shim, a small subclass of pdb.Pdb (folder
// shim), over standard input. Each command is one exchange (session.go): the Debugger sends a
// line of base64-encoded JSON, and the process answers with its output and an escape sequence
// (package env/guest/framing) that contains the position, the source and the breakpoints.
//
// The Debugger itself runs commands that concern only breakpoints (breakpoints.go). The shim
// receives the changes with the next command that it executes. The program starts at the first
// command that needs it. It starts again at the first such command after it has ended or a file
// was edited.
package pdb
