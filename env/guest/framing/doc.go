// Package framing splits one byte stream into a program's output and the frames of the interpreter
// that runs the program.
//
// A long-lived process inside a sandbox (a debugger, a shell) sends a frame when it is ready for the
// next command. A frame is a private escape sequence, which terminals ignore:
//
//	ESC ] 7717 ; NONCE ; SEQ ; PID ; PIECE ; PIECES ; BASE64 BEL
//
// The process receives a new random NONCE with every command, so a program's output cannot end a
// read early. A program that learns a nonce can forge the answer to the current command, but not to
// a later one. SEQ grows with every frame of a command. PID never changes, so frames from a forked
// child that inherited the interpreter's code are not accepted.
//
// A frame that is longer than one atomic write to a pipe is split into pieces, numbered from 1 to
// PIECES, so that output of other processes can appear only between pieces. Everything that is not
// part of an accepted frame is output, byte for byte.
//
// Scanner splits the stream, Spool keeps the beginning and the end of the output, and Conn sends a
// command over an env.Terminal and waits for its frame.
package framing
