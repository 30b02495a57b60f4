package bubblewrap

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
)

const guestPath = "/run/tracesmith/guest"

// reservedDirs are the directories that no workspace or mount may hide.
var reservedDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys", "/run", "/var/tmp"}

// build adds the arguments for everything that the sandbox sees. The order matters: later mounts hide earlier ones, and
// the root becomes read-only last.
func (a *arguments) build(spec env.SandboxSpec, python drivers.Interpreter, binary string, mode privilegeMode) error {
	if err := drivers.CheckPath("workdir", spec.Workdir, reservedDirs); err != nil {
		return err
	}
	a.add("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1")
	if mode.root {
		// The guest needs these capabilities to give the workspace to its user and to drop its privileges.
		a.add("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_SETPCAP")
	} else {
		id := fmt.Sprint(drivers.User)
		a.add("--unshare-user", "--uid", id, "--gid", id, "--cap-drop", "ALL")
	}
	if !spec.Network {
		a.add("--unshare-net")
	}
	if err := a.addSystem(spec.Network); err != nil {
		return err
	}
	disk := spec.Limits.DiskBytes
	a.add("--proc", "/proc", "--dev", "/dev")
	a.addTmpfs("/dev/shm", "1777", drivers.DiskShare(disk, 1))
	a.add("--remount-ro", "/dev")
	a.addTmpfs("/tmp", "1777", drivers.DiskShare(disk, 4))
	a.add("--symlink", "../tmp", "/var/tmp")
	a.addTmpfs(drivers.Home, "0755", drivers.DiskShare(disk, 1))

	for _, dir := range interpreterDirs(python) {
		a.addBind("--ro-bind", dir, dir)
	}
	a.addDir(drivers.BinPath)
	for _, name := range python.MissingNames() {
		a.add("--symlink", python.Executable, path.Join(drivers.BinPath, name))
	}
	a.addBind("--ro-bind", binary, guestPath)
	if err := a.addMounts(spec.Mounts, mode); err != nil {
		return err
	}
	a.addTmpfs(spec.Workdir, "0755", drivers.DiskShare(disk, 10))
	a.add("--chdir", spec.Workdir, "--remount-ro", "/")
	return nil
}

// addSystem mounts the directories of the host's programs, and only those files of /etc that programs need.
func (a *arguments) addSystem(network bool) error {
	a.add("--ro-bind", "/usr", "/usr")
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		fi, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(dir); err == nil {
			a.add("--symlink", target, dir)
		} else if fi.IsDir() {
			a.add("--ro-bind", dir, dir)
		}
	}
	for _, dir := range []string{"/etc", "/var", "/run/tracesmith"} {
		a.addDir(dir)
	}
	for dest, content := range map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:" + drivers.Home + ":/bin/bash\n" +
			fmt.Sprintf("user:x:%d:%d:user:%s:/bin/bash\n", hostUser, hostUser, drivers.Home),
		"/etc/group":         fmt.Sprintf("root:x:0:\nuser:x:1000:\nuser:x:%d:\n", hostUser),
		"/etc/hosts":         "127.0.0.1 localhost\n127.0.1.1 sandbox\n::1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := a.addFile(dest, content); err != nil {
			return err
		}
	}
	shown := []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"}
	if network {
		shown = append(shown, "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
		// If this is a symlink, bwrap mounts its target, which may be outside the directories that the sandbox sees.
		a.add("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
	}
	for _, p := range shown {
		a.add("--ro-bind-try", p, p)
	}
	return nil
}

func (a *arguments) addMounts(mounts []env.Mount, mode privilegeMode) error {
	for _, m := range mounts {
		if err := drivers.CheckPath("mount", m.Path, reservedDirs); err != nil {
			return err
		}
		flag := "--ro-bind"
		if m.Write {
			flag = "--bind"
			if mode.root { // to the host, the sandbox's programs run as hostUser
				if err := os.Chown(m.Host, hostUser, hostUser); err != nil {
					return fmt.Errorf("handing the mount %s over to the sandbox: %w", m.Host, err)
				}
			}
		}
		a.addBind(flag, m.Host, path.Clean(m.Path))
	}
	return nil
}

// interpreterDirs returns the directories of an interpreter that are not below /usr. None of them is below another.
func interpreterDirs(p drivers.Interpreter) []string {
	dirs := []string{filepath.Clean(p.BasePrefix), filepath.Clean(p.Prefix), p.Bin()}
	if real, err := filepath.EvalSymlinks(p.Executable); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	slices.Sort(dirs)
	var out []string
	for _, d := range dirs {
		if !slices.ContainsFunc(append([]string{"/usr", "/bin"}, out...), func(have string) bool { return isWithin(d, have) }) {
			out = append(out, d)
		}
	}
	return out
}

func isWithin(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// searchPath returns the directories that come before the system's PATH. They include the interpreter's directory,
// unless the interpreter is the first one in the system's PATH.
func searchPath(p drivers.Interpreter) []string {
	for _, dir := range strings.Split(drivers.SystemPath, ":") {
		if dir == p.Bin() {
			return []string{drivers.BinPath}
		}
		for _, name := range []string{"python", "python3"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return []string{drivers.BinPath, p.Bin()}
			}
		}
	}
	return []string{drivers.BinPath, p.Bin()}
}
