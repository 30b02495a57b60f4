// Package framing separates what a program prints from what the interpreter
// that runs it says about itself, on one byte stream.
//
// A long-lived process inside a sandbox (a debugger, a shell) announces "ready
// for the next command" with one private escape that terminals ignore:
//
//	ESC ] 7717 ; NONCE ; SEQ ; PID ; PIECE ; OF ; BASE64 BEL
//
// NONCE is random and new for every command, told to the process together with
// it; SEQ grows with every frame of a command; PID never changes. So text a
// program prints cannot end a read early, a forked child that inherited the
// announcing code is not believed, and who learns a nonce can falsify the answer
// to the command that is under way and no other: what comes later is asked for
// with a nonce of its own. A frame longer than one atomic write to a pipe comes
// in pieces, 1 to OF, so that what other processes write at the same time falls
// between them. Everything that is not such a frame is output, byte for byte.
//
// Scanner takes the stream apart, Spool keeps a bounded head and tail of the
// output, and Conn sends a command over an env.Terminal and waits for its frame.
//
// It imports env only.
package framing
