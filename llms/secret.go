package llms

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// IsSecretRef reports whether a setting refers to a secret, as env:NAME or file:PATH.
func IsSecretRef(s string) bool {
	return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:")
}

// MinSecret is the minimum length, in bytes, of secrets that are searched for and masked.
// Masking shorter ones, such as the "x" that users give to servers without keys, would
// damage ordinary words.
const MinSecret = 8

// maxSecret limits how much of a file is read.
const maxSecret = 64 << 10

// Secret returns the value of the variable in env:NAME, or the first line of the file in
// file:PATH, without surrounding white space. Errors never contain the value.
func Secret(ref string, getenv func(string) string) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("reading the secret: %w", err)
		}
		defer f.Close()
		line, err := bufio.NewReader(io.LimitReader(f, maxSecret)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the secret: %w", err)
		}
		if line = strings.TrimSpace(line); line == "" {
			return "", fmt.Errorf("the first line of %s is empty: the secret belongs there", path)
		}
		return line, nil
	}
	name := strings.TrimPrefix(ref, "env:")
	if getenv != nil {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			return value, nil
		}
	}
	return "", fmt.Errorf("environment variable %s is not set: export it and run again", name)
}
