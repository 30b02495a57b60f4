// Command tracesmith-guest is the first process of a sandbox. For tracesmith on the host, it runs
// programs, keeps terminals, moves files and enforces limits on time, memory and processes. It is
// a small static binary, which `make build` embeds into tracesmith.
package main

import "github.com/tracesmith/tracesmith/env/guest"

func main() { guest.Main() }
