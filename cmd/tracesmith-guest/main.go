// Command tracesmith-guest is the service that runs inside a sandbox. It is a small static
// binary, which `make build` embeds into tracesmith.
package main

import "github.com/tracesmith/tracesmith/env/guest"

func main() { guest.Main() }
