// Package pdb is the Python debugger of the environment.
//
// A Debugger keeps the state that outlives a process: the breakpoints and the entrypoint
// (debuggee.go). The process runs a small subclass of pdb.Pdb (folder shim), which is sent
// over standard input to the interpreter that the entrypoint names (entrypoint.go). Each
// command is one exchange (session.go): a line of base64 JSON goes in; the output and one
// private escape sequence (env/guest/framing) with position, source and breakpoints come out.
//
// The registry (breakpoints.go) answers commands that only concern breakpoints, and the shim
// gets the changes with the next command. The program starts at the first command that needs
// it, and again after it has ended or a file was edited.
package pdb
