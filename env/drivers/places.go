package drivers

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Places and the user inside every isolated sandbox.
const (
	DefaultWorkdir = "/workspace"
	Home           = "/home/user"
	BinPath        = "/run/tracesmith/bin" // links to interpreters, first in PATH
	SystemPath     = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	User           = 1000
)

// Environ is the environment of every program: nothing of the host's, the directories of search before SystemPath,
// and extra at the end, which wins.
func Environ(home string, search, extra []string) []string {
	return append([]string{
		"PATH=" + strings.Join(append(slices.Clone(search), SystemPath), ":"),
		"HOME=" + home,
		"USER=user",
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"TZ=UTC",
		"TERM=dumb",
		"NO_COLOR=1",
		"PAGER=cat",
		"GIT_PAGER=cat",
		"PYTHONDONTWRITEBYTECODE=1",
		"PYTHONHASHSEED=0",
	}, extra...)
}

// CheckPlace returns an error if a workspace or mount must not be at p: if p is relative, covers a place that every
// sandbox needs, or is one of the directories taken or below it. what names the setting in the error.
func CheckPlace(what, p string, taken []string) error {
	clean := path.Clean(p)
	if !path.IsAbs(p) || slices.Contains([]string{"/", "/tmp", Home}, clean) ||
		slices.ContainsFunc(taken, func(dir string) bool { return clean == dir || strings.HasPrefix(clean, dir+"/") }) {
		return fmt.Errorf("%s %q: use an absolute path of its own, such as %s", what, p, DefaultWorkdir)
	}
	return nil
}

// CheckContainerPlace is CheckPlace for a container, which needs more of its image's directories.
func CheckContainerPlace(what, p string) error {
	taken := []string{"/proc", "/dev", "/sys", "/etc", "/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/run/tracesmith"}
	if path.Clean(p) == "/usr" { // other directories below it are allowed
		taken = append(taken, "/usr")
	}
	return CheckPlace(what, p, taken)
}
