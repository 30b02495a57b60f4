//go:build race

package main

import (
	"os"
	"strings"
	"syscall"
)

// A guest with the race detector ends at the first data race, so that the test that uses it fails.
// The detector reads its options only when a program starts.
func init() {
	options, halt := os.Getenv("GORACE"), "halt_on_error=1"
	if strings.Contains(options, halt) {
		return
	}
	if err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "GORACE="+options+" "+halt)); err != nil {
		panic(err)
	}
}
