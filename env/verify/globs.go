package verify

import (
	"path"
	"strings"
)

// matches reports whether a pattern of TestSpec.Files matches a path of the workspace. A pattern
// without a slash is compared with the base name, any other pattern with the whole path. ** matches
// any number of directories. At the end of a pattern, it matches everything below a directory, and
// also a file or link that has replaced the directory.
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
