// Package pdb is the Python debugger of the environment.
//
// A Debugger keeps what must outlive any one process: the breakpoints, the
// entrypoint and where the program stood. The process is a small subclass of
// pdb.Pdb (folder shim) that is sent over standard input to the interpreter the
// entrypoint names. One exchange per command: a line of base64 JSON goes in, the
// output and one private escape (env/guest/framing) with position, source and
// breakpoints come out.
//
// Commands that only concern breakpoints are answered from the registry; the
// shim mirrors it with the next command. The program starts at the first
// command that needs it, and again after it has ended or an edit has made it
// stale.
//
// It imports env, env/guest/framing and schemas.
package pdb
