package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// findScript is a Python script that searches an interpreter's module path for directories and prints
// their paths as a JSON list. It removes those in the virtual environment instead, because the set-up has
// created them.
const findScript = `import json, os, shutil, sys
found = []
for name in sys.argv[2:]:
    for top in sys.path:
        place = os.path.realpath(os.path.join(top or "/", name))
        if not top or not os.path.isdir(place):
            continue
        if place.startswith(sys.argv[1] + "/"):
            shutil.rmtree(place)
        elif place not in found:
            found.append(place)
print(json.dumps(found))`

// findHidden returns the directories that a task hides, which it searches in the build sandbox. It returns an error
// if one of them belongs to the system, because sandboxes need the system's directories.
func findHidden(ctx context.Context, sb env.Sandbox, driver string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var out []string
	for _, python := range []string{"python3", Prefix + "/bin/python3"} { // their versions may differ
		args := append([]string{python, "-I", "-c", findScript, Prefix}, names...)
		res, err := sb.Run(ctx, env.Command{Args: args, Dir: "/", MaxOutput: 1 << 20})
		if err != nil {
			return nil, fmt.Errorf("searching the directories that the task hides: %w", err)
		}
		var found []string
		if err := json.Unmarshal(res.Output, &found); err != nil || res.ExitCode != 0 {
			return nil, fmt.Errorf("searching the directories that the task hides: exit code %d: %s", res.ExitCode, lastLines(res.Output, 3))
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	for _, dir := range out {
		if strings.HasPrefix(dir, "/usr/lib/") || driver == "bubblewrap" && strings.HasPrefix(dir, "/usr/") {
			return nil, fmt.Errorf("hide: %s is part of the system: give the task an interpreter outside of it (python: a path or version), or use docker", dir)
		}
	}
	return out, nil
}

// writeHidden records the hidden directories in a cache entry, and creates the empty directory to mount over them.
func writeHidden(entry string, dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	text, err := json.Marshal(dirs)
	if err != nil {
		return err
	}
	return errors.Join(os.Mkdir(filepath.Join(entry, emptyDir), 0o755), os.WriteFile(filepath.Join(entry, hiddenFile), text, 0o600))
}

// hiddenDirs returns the hidden directories that a cache entry records.
func hiddenDirs(entry string) (dirs []string, err error) {
	text, err := os.ReadFile(filepath.Join(entry, hiddenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &dirs)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the set-up cache: %w", err)
	}
	return dirs, nil
}
