package redact

import "regexp"

// marker is the beginning of every placeholder.
const marker = "[REDACTED:"

var placeholder = regexp.MustCompile(`\[REDACTED:\w+:\d+\]`)
