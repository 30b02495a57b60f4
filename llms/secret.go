package llms

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// IsSecretRef tells whether a setting says where a secret stands, as env:NAME or
// file:PATH, and is none itself.
func IsSecretRef(s string) bool {
	return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:")
}

// MinSecret is how many bytes a secret must have to be looked for and masked:
// shorter ones, such as the "x" that is given to a server that asks for no key,
// would tear ordinary words apart.
const MinSecret = 8

// maxSecret bounds how much of a file is looked at.
const maxSecret = 64 << 10

// Secret is what env:NAME or file:PATH refers to: the variable, or the first line
// of the file, without the space around it. Errors name the place, never a value.
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
