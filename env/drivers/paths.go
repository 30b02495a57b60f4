package drivers

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Paths and the user inside every isolated sandbox.
const (
	DefaultWorkdir = "/workspace"
	Home           = "/home/user"
	BinPath        = "/run/tracesmith/bin" // has links to interpreters and is first in PATH
	SystemPath     = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	User           = 1000
)

// Environ returns the environment of every program. It contains nothing of the host's environment. PATH consists of the
// directories in search and then SystemPath. extra overrides the other variables.
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

// CheckPath returns an error if a workspace or mount must not be at p: if p is relative, hides a directory that every
// sandbox needs, or is in a reserved directory. The error begins with setting.
func CheckPath(setting, p string, reserved []string) error {
	clean := path.Clean(p)
	if !path.IsAbs(p) || slices.Contains([]string{"/", "/tmp", Home}, clean) ||
		slices.ContainsFunc(reserved, func(dir string) bool { return clean == dir || strings.HasPrefix(clean, dir+"/") }) {
		return fmt.Errorf("%s %q: use an absolute path that the sandbox does not need itself, such as %s", setting, p, DefaultWorkdir)
	}
	return nil
}

// CheckContainerPath is CheckPath for containers. It reserves the directories of an image that a container needs.
func CheckContainerPath(setting, p string) error {
	reserved := []string{"/proc", "/dev", "/sys", "/etc", "/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/run/tracesmith"}
	if path.Clean(p) == "/usr" { // other directories below it are allowed
		reserved = append(reserved, "/usr")
	}
	return CheckPath(setting, p, reserved)
}
