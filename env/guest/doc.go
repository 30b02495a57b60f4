// Package guest has both ends of the service inside a sandbox.
//
// The guest (Main) is the sandbox's first process. It runs programs, keeps terminals, moves
// files, enforces limits on time, memory and processes, and reaps orphans. Read it from the
// top: main.go starts it, server.go answers the host's calls, run.go, terminal.go,
// transfer.go, walk.go and search.go do the work, and spawn.go, watchdog.go, kill.go and
// scope.go start, watch, kill and identify programs.
//
// The host's end (Client) speaks to the guest over one byte stream and treats its answers
// as hostile: every call is bounded, and a guest that breaks the protocol or does not
// answer is a dead sandbox.
package guest
