package redact

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secretName are names of variables that hold a secret: MY_API_KEY, HF_TOKEN,
// DB_PASSWORD_2.
var secretName = regexp.MustCompile(`(?i)(?:^|_|[a-z])(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)(?:_?[0-9]+)?$`)

// plainWord are values nobody generated: they stand for themselves in any text.
var plainWord = regexp.MustCompile(`^[a-z]{1,11}$|^[0-9]+$`)

// Environment are the values of the variables (NAME=value) that hold a secret by
// their name. Paths, plain words of less than 12 letters and numbers are no
// secrets: a password "postgres" would tear every text about the database apart.
func Environment(environ []string) []string {
	var out []string
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if value = strings.TrimSpace(value); secretName.MatchString(name) && value != "" && !strings.HasPrefix(value, "/") && !plainWord.MatchString(value) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lineSecret is how long a line of a value of several lines must be to be
// looked for on its own.
const lineSecret = 16

// forms are the ways in which a known value is written: as it is, line by line,
// escaped for a URL, in base64.
func forms(value string) []string {
	out := []string{value}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= lineSecret && !strings.HasPrefix(line, "-----") {
				out = append(out, line)
			}
		}
	}
	if escaped := url.QueryEscape(value); escaped != value {
		out = append(out, escaped)
	}
	if len(value) >= lineSecret {
		out = append(out, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="))
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < MinKnown })
}
