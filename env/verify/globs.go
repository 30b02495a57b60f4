package verify

import (
	"path"
	"strings"
)

// matches says whether a path of the workspace is named by a pattern of
// TestSpec.Files: without a slash it is matched against the base name in any
// directory; otherwise against the whole path, where ** stands for any number
// of directories and a final ** for everything below, as well as for a file or
// link in the directory's own place.
func matches(pattern, file string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if !strings.Contains(pattern, "/") {
		ok, err := path.Match(pattern, path.Base(file))
		return ok && err == nil
	}
	return matchParts(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), strings.Split(file, "/"))
}

func matchParts(pattern, file []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return true
			}
			for i := range len(file) + 1 {
				if matchParts(pattern[1:], file[i:]) {
					return true
				}
			}
			return false
		}
		if len(file) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], file[0]); !ok || err != nil {
			return false
		}
		pattern, file = pattern[1:], file[1:]
	}
	return len(file) == 0
}
