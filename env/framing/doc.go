// Package framing separates what a program prints from what the interpreter
// that runs it says about itself, on one byte stream.
//
// A long-lived process inside a sandbox (a debugger, a shell) announces "ready
// for the next command" with one private escape that terminals ignore:
//
//	ESC ] 7717 ; NONCE ; SEQ ; PID ; BASE64(JSON) BEL
//
// NONCE is random per process start, SEQ grows with every frame and PID never
// changes, so text a program prints cannot end a read early, and a forked child
// that inherited the announcing code is not believed. Everything that is not
// such a frame is output, byte for byte.
//
// Scanner takes the stream apart, Spool keeps a bounded head and tail of the
// output, and Conn sends a command over an env.Terminal and waits for its frame.
//
// It imports env only.
package framing
