// Command tracesmith-guest is the service inside a sandbox, as a small static
// binary of its own; `make build` embeds it into tracesmith.
package main

import "github.com/tracesmith/tracesmith/env/guest"

func main() { guest.Main() }
