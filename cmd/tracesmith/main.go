// Command tracesmith turns buggy Python repositories into verified debugging
// trajectories.
package main

import (
	"context"
	"os"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/env/guest"
)

func main() {
	guest.MainIfGuest() // does not return if a sandbox started this binary as its guest
	state, stop := cli.OSState()
	defer stop()
	os.Exit(cli.Main(context.Background(), state, cli.Tracesmith)) //nolint:gocritic // stop is not needed at exit
}
