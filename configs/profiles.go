package configs

import (
	"embed"
	"path"
	"strings"
)

//go:embed profiles/*.yaml
var profiles embed.FS

// Profile returns an embedded example configuration by name.
func Profile(name string) ([]byte, bool) {
	data, err := profiles.ReadFile(path.Join("profiles", path.Base(name)+".yaml"))
	return data, err == nil && path.Base(name) == name
}

// Profiles lists the embedded configurations.
func Profiles() []string {
	entries, err := profiles.ReadDir("profiles")
	if err != nil {
		panic(err) // cannot happen: the directory is embedded in the binary
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}
