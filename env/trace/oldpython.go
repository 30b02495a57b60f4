package trace

import (
	"fmt"
	"strconv"
	"strings"
)

// oldestPython is the minor version of the oldest Python that supports paired traces.
const oldestPython = 8

// UnsupportedError is returned by Trace if the interpreter of the tests is too old.
type UnsupportedError struct{ Python string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("paired traces need Python 3.%d or later, and the tests run on Python %s: choose a newer interpreter for the task", oldestPython, e.Python)
}

// checkPython returns an UnsupportedError if a version is too old.
func checkPython(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) > 1 && parts[0] == "3" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && minor < oldestPython {
			return &UnsupportedError{version}
		}
	}
	return nil
}
