package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// A place that this user may not write is a usage error in every command.
func TestMissingPermissionIsAUsageErrorWithARemedy(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("making it: %w", &fs.PathError{Op: "mkdir", Path: "out/x", Err: syscall.EACCES}): "try: name a place that you can read and write",
		fmt.Errorf("out/x: %w: name a directory", syscall.ENOTDIR):                                  "out/x: not a directory: name a directory",
	} {
		if got, text := CodeOf(err), Describe(err); got != ExitUsage || !strings.Contains(text, "out/x") || !strings.Contains(text, want) {
			t.Errorf("exit code %d, %s", got, text)
		}
	}
}

// A full disk is a usage error in every command.
func TestFullDiskIsAUsageErrorWithARemedy(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{syscall.ENOSPC: "free some space", syscall.EDQUOT: "free some space", syscall.EROFS: "name a place that can be written"} {
		err := fmt.Errorf("storing a repository: %w", &fs.PathError{Op: "write", Path: "out/x", Err: errno})
		if got := CodeOf(err); got != ExitUsage {
			t.Errorf("%v: exit code %d", errno, got)
		}
		if text := Describe(err); !strings.Contains(text, "out/x") || !strings.Contains(text, "try: "+want) {
			t.Errorf("%v: %s", errno, text)
		}
	}
	own := &Error{Code: ExitStorage, Try: "another bucket", Err: syscall.ENOSPC}
	if got, text := CodeOf(own), Describe(own); got != ExitStorage || strings.Contains(text, "free some space") {
		t.Errorf("an error with its own code and hint: %d, %s", got, text)
	}
	if got := CodeOf(errors.New("something else")); got != ExitFailure {
		t.Errorf("another error: exit code %d", got)
	}
}
