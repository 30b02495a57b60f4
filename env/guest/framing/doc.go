// Package framing separates a program's output from the announcements of the interpreter that
// runs it, on one byte stream.
//
// A long-lived process inside a sandbox (a debugger, a shell) announces that it is ready for the
// next command with one private escape sequence, which terminals ignore:
//
//	ESC ] 7717 ; NONCE ; SEQ ; PID ; PIECE ; OF ; BASE64 BEL
//
// The process gets a new random NONCE with every command. SEQ grows with every frame of a command,
// and PID never changes. So a program's output cannot end a read early, and frames of a forked
// child that inherited the announcing code do not count. A program that learns a nonce can falsify
// the answer to the command under way, but no later one. A frame longer than one atomic write to a
// pipe comes in pieces, 1 to OF, so that concurrent output of other processes falls between them.
// Everything else is output, byte for byte.
//
// Scanner splits the stream, Spool keeps the beginning and the end of the output, and Conn sends a
// command over an env.Terminal and waits for its frame.
//
// It imports env only.
package framing
