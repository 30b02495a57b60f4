// Package guest implements the service that runs inside a sandbox and the host's client for it.
//
// The guest (Main) is the sandbox's first process. It runs programs, keeps terminals, moves
// files, enforces limits on time, memory and processes, and reaps orphans. Read it from the
// top: main.go starts it, server.go answers the host's calls, run.go, terminal.go,
// transfer.go, walk.go and search.go do the work, and spawn.go, watchdog.go, kill.go and
// scope.go start, watch, kill and identify programs.
//
// The host's client (Client) talks to the guest over one byte stream and does not trust its
// answers: every call has a timeout, and if a guest breaks the protocol or does not answer,
// the client treats the sandbox as dead.
package guest
