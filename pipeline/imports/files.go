package imports

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file with trajectories. Name, which config_json keeps, is its path below the directory that was
// named, or below the closest directory that contains all files that were named.
type File struct{ Path, Name string }

// patterns holds the names of the files that Files looks for in a directory, by format.
var patterns = map[string][]string{
	"atif":           {"*.json", "*.jsonl", "*.parquet"},
	"debug-gym":      {"trajectory.json", "*.jsonl", "*.parquet"},
	"messages":       {"*.json", "*.jsonl", "*.ndjson", "*.parquet"},
	"mini-swe-agent": {"*.traj.json", "*.jsonl", "*.parquet"},
	"openhands":      {"*.json", "*.jsonl", "*.ndjson", "*.parquet"},
	"swe-agent":      {"*.traj", "*.jsonl", "*.parquet"},
}

// Files returns the files that paths name, and those of the format in the directories that they name, sorted. A
// path that does not exist stays in the list, so that Episodes reports it.
func Files(format string, paths []string) ([]File, error) {
	var out []File
	var named []string
	for _, p := range paths {
		if st, err := os.Stat(p); err != nil || !st.IsDir() {
			named = append(named, filepath.Clean(p))
			continue
		}
		found, err := filesBelow(format, p)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	base := ""
	if len(named) > 0 {
		base = filepath.Dir(named[0])
	}
	for _, p := range named {
		for !strings.HasPrefix(p, base+string(filepath.Separator)) && base != "." && base != filepath.Dir(base) {
			base = filepath.Dir(base)
		}
	}
	for _, p := range named {
		name, err := filepath.Rel(base, p)
		if err != nil || !filepath.IsLocal(name) {
			name = filepath.Base(p)
		}
		out = append(out, File{p, filepath.ToSlash(name)})
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(out), nil
}

// filesBelow returns the files of a format in a directory and in those below it, except hidden ones.
func filesBelow(format, dir string) ([]File, error) {
	var out []File
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		matches := func(pattern string) bool {
			ok, _ := path.Match(pattern, uncompressed(e.Name())) // the patterns are valid
			return ok
		}
		if !e.IsDir() && slices.ContainsFunc(patterns[format], matches) {
			name, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			out = append(out, File{p, filepath.ToSlash(name)})
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("there is no %s in the directory: name the files themselves", strings.Join(patterns[format], ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return out, nil
}

// uncompressed returns the name of a file without the extension of a compression.
func uncompressed(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
}
