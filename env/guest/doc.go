// Package guest is both halves of the service inside a sandbox. The guest half
// (Main) is the sandbox's first process: it runs programs in scopes of their
// own, keeps terminals, moves files, enforces time, memory and process limits,
// and reaps orphans. The host half (Client) speaks to it over one byte stream
// and treats what comes back as hostile: every call is bounded, and a guest
// that breaks the protocol or falls silent is a dead sandbox.
//
// It imports env, schemas and guestpb; creack/pty and ttrpc have their home here.
package guest
