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

// lookUp prints the paths of directories below an interpreter's module path, as a JSON list. It
// removes those in the virtual environment, where only the set-up can have put them.
const lookUp = `import json, os, shutil, sys
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

// places finds the directories that a task hides, in the build sandbox. It refuses directories
// of the host's system, which cannot be covered because sandboxes need the rest of it.
func places(ctx context.Context, sb env.Sandbox, driver string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var out []string
	for _, python := range []string{"python3", Prefix + "/bin/python3"} { // their versions may differ
		args := append([]string{python, "-I", "-c", lookUp, Prefix}, names...)
		res, err := sb.Run(ctx, env.Command{Args: args, Dir: "/", MaxOutput: 1 << 20})
		if err != nil {
			return nil, fmt.Errorf("looking for what the task hides: %w", err)
		}
		var found []string
		if err := json.Unmarshal(res.Output, &found); err != nil || res.ExitCode != 0 {
			return nil, fmt.Errorf("looking for what the task hides: exit code %d: %s", res.ExitCode, lastLines(res.Output, 3))
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	for _, place := range out {
		if strings.HasPrefix(place, "/usr/lib/") || driver == "bubblewrap" && strings.HasPrefix(place, "/usr/") {
			return nil, fmt.Errorf("hide: %s is part of the system: give the task an interpreter outside of it (python: a path or version), or use docker", place)
		}
	}
	return out, nil
}

// keepHidden writes the places into an entry, with the empty directory to mount there.
func keepHidden(entry string, places []string) error {
	if len(places) == 0 {
		return nil
	}
	text, err := json.Marshal(places)
	if err != nil {
		return err
	}
	return errors.Join(os.Mkdir(filepath.Join(entry, emptyDir), 0o755), os.WriteFile(filepath.Join(entry, hiddenFile), text, 0o600))
}

func hiddenPlaces(entry string) (places []string, err error) {
	text, err := os.ReadFile(filepath.Join(entry, hiddenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &places)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the set-up cache: %w", err)
	}
	return places, nil
}
