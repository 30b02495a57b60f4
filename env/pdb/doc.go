// Package pdb implements the environment's Python debugger.
//
// A Debugger runs the program in a Python process, a new one for each run. It keeps what must
// outlive the process: the breakpoints and the entrypoint (debuggee.go). The Debugger starts the
// interpreter that the entrypoint names (entrypoint.go) and sends it the shim, a small subclass
// of pdb.Pdb (folder shim), over standard input. Each command is one exchange (session.go). The
// Debugger sends a line of base64-encoded JSON. The process answers with the output and one
// private escape sequence (env/guest/framing) that holds the position, the source and the
// breakpoints.
//
// The registry (breakpoints.go) answers commands that concern only breakpoints. The shim
// receives the changes with the next command that it executes. The program starts at the first
// command that needs it, and again after it has ended or a file was edited.
package pdb
