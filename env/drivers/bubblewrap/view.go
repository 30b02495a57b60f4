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

// taken lists the directories of a sandbox that no workspace or mount may hide.
var taken = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys", "/run", "/var/tmp"}

// build adds everything that the sandbox sees. Order matters: later mounts cover earlier ones, and the root becomes
// read-only last.
func (a *arguments) build(spec env.SandboxSpec, python drivers.Interpreter, binary string, way startWay) error {
	if err := drivers.CheckPlace("workdir", spec.Workdir, taken); err != nil {
		return err
	}
	a.add("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1")
	if way.root {
		// The guest needs these to hand the workspace over and to drop its privileges.
		a.add("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_SETPCAP")
	} else {
		id := fmt.Sprint(drivers.User)
		a.add("--unshare-user", "--uid", id, "--gid", id, "--cap-drop", "ALL")
	}
	if !spec.Network {
		a.add("--unshare-net")
	}
	if err := a.system(spec.Network); err != nil {
		return err
	}
	disk := spec.Limits.DiskBytes
	a.add("--proc", "/proc", "--dev", "/dev")
	a.tmpfs("/dev/shm", "1777", drivers.Share(disk, 1))
	a.add("--remount-ro", "/dev")
	a.tmpfs("/tmp", "1777", drivers.Share(disk, 4))
	a.add("--symlink", "../tmp", "/var/tmp")
	a.tmpfs(drivers.Home, "0755", drivers.Share(disk, 1))

	for _, dir := range outside(python) {
		a.bind("--ro-bind", dir, dir)
	}
	a.dir(drivers.BinPath)
	for _, name := range python.Missing() {
		a.add("--symlink", python.Executable, path.Join(drivers.BinPath, name))
	}
	a.bind("--ro-bind", binary, guestPath)
	if err := a.mounts(spec.Mounts, way); err != nil {
		return err
	}
	a.tmpfs(spec.Workdir, "0755", drivers.Share(disk, 10))
	a.add("--chdir", spec.Workdir, "--remount-ro", "/")
	return nil
}

// system shows the host's programs, and of /etc only what they need.
func (a *arguments) system(network bool) error {
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
		a.dir(dir)
	}
	for place, content := range map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:" + drivers.Home + ":/bin/bash\n" +
			fmt.Sprintf("user:x:%d:%d:user:%s:/bin/bash\n", hostUser, hostUser, drivers.Home),
		"/etc/group":         fmt.Sprintf("root:x:0:\nuser:x:1000:\nuser:x:%d:\n", hostUser),
		"/etc/hosts":         "127.0.0.1 localhost\n127.0.1.1 sandbox\n::1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := a.file(place, content); err != nil {
			return err
		}
	}
	shown := []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"}
	if network {
		shown = append(shown, "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
		// The target of a symlink would not be in the sandbox; the source of a bind is resolved outside.
		a.add("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
	}
	for _, p := range shown {
		a.add("--ro-bind-try", p, p)
	}
	return nil
}

func (a *arguments) mounts(mounts []env.Mount, way startWay) error {
	for _, m := range mounts {
		if err := drivers.CheckPlace("mount", m.Path, taken); err != nil {
			return err
		}
		flag := "--ro-bind"
		if m.Write {
			flag = "--bind"
			if way.root { // programs are hostUser on the host
				if err := os.Chown(m.Host, hostUser, hostUser); err != nil {
					return fmt.Errorf("handing the mount %s over to the sandbox: %w", m.Host, err)
				}
			}
		}
		a.bind(flag, m.Host, path.Clean(m.Path))
	}
	return nil
}

// outside lists the directories of an interpreter that are not part of /usr, outermost first and none below another.
func outside(p drivers.Interpreter) []string {
	dirs := []string{filepath.Clean(p.BasePrefix), filepath.Clean(p.Prefix), p.Bin()}
	if real, err := filepath.EvalSymlinks(p.Executable); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	slices.Sort(dirs)
	var out []string
	for _, d := range dirs {
		if !slices.ContainsFunc(append([]string{"/usr", "/bin"}, out...), func(have string) bool { return within(d, have) }) {
			out = append(out, d)
		}
	}
	return out
}

// within reports whether p is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// searchPath is what comes before the system's PATH. It includes the interpreter's own directory only if the
// system's PATH would lead to another interpreter.
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
