package synth

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tracesmith/tracesmith/env/tasks/leak"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// otherCopy returns where a buggy repository contains a fix that restores the healthy one, such as a stray copy of the
// file or the same statement in another function; "" if it does not. The check of a task (see env/tasks/check) refuses
// such tasks. files maps the path of each changed file to its buggy text.
func otherCopy(healthy, buggy *workspace.Tree, files map[string]string) (string, error) {
	var changes []leak.Change
	for path, base := range files {
		text, _, _, err := healthy.File(path)
		if err != nil {
			return "", err
		}
		fixed := string(text)
		changes = append(changes, leak.Change{Path: path, Base: &base, Fixed: &fixed})
	}
	found, err := leak.Search(changes, func(each func(name string, data []byte) error) error {
		for _, path := range buggy.Paths() {
			data, _, _, err := buggy.File(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a directory
			}
			if err == nil {
				err = each(path, data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s:%d has the %s %q", found[0].Path, found[0].Line, found[0].Kind, found[0].Excerpt), nil
}
