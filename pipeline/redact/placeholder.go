package redact

import "regexp"

const marker = "[REDACTED:"

var placeholder = regexp.MustCompile(`\[REDACTED:\w+:\d+\]`)
