package drivers

import (
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/tracesmith/tracesmith/env"
)

// build writes what the sandbox sees. Order matters: later mounts lie on top,
// and the root becomes read-only last.
func (a *bwrapArgs) build(spec env.SandboxSpec, python interpreter, binary string, way startWay) error {
	if err := checkPlace("workdir", spec.Workdir); err != nil {
		return err
	}
	a.add("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1")
	if way.root {
		// Just enough to hand the workspace over and to become nobody.
		a.add("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_SETPCAP")
	} else {
		id := fmt.Sprint(insideUser)
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
	a.tmpfs("/dev/shm", "1777", share(disk, 1))
	a.add("--remount-ro", "/dev")
	a.tmpfs("/tmp", "1777", share(disk, 4))
	a.add("--symlink", "../tmp", "/var/tmp")
	a.tmpfs(home, "0755", share(disk, 1))

	for _, dir := range python.outside() {
		a.bind("--ro-bind", dir, dir)
	}
	a.dir(binPath)
	for _, name := range python.missing() {
		a.add("--symlink", python.Executable, path.Join(binPath, name))
	}
	a.bind("--ro-bind", binary, guestPath)
	if err := a.mounts(spec.Mounts, way); err != nil {
		return err
	}
	a.tmpfs(spec.Workdir, "0755", share(disk, 10))
	a.add("--chdir", spec.Workdir, "--remount-ro", "/")
	return nil
}

// system shows the host's programs and as little of /etc as they need.
func (a *bwrapArgs) system(network bool) error {
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
		"/etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:" + home + ":/bin/bash\n" +
			fmt.Sprintf("user:x:%d:%d:user:%s:/bin/bash\n", hostUser, hostUser, home),
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
		// The file itself: a symlink would lead to a place that is not shown.
		a.add("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
	}
	for _, p := range shown {
		a.add("--ro-bind-try", p, p)
	}
	return nil
}

func (a *bwrapArgs) mounts(mounts []env.Mount, way startWay) error {
	for _, m := range mounts {
		if err := checkPlace("mount", m.Path); err != nil {
			return err
		}
		flag := "--ro-bind"
		if m.Write {
			flag = "--bind"
			if way.root { // programs are hostUser outside
				if err := os.Chown(m.Host, hostUser, hostUser); err != nil {
					return fmt.Errorf("handing the mount %s over to the sandbox: %w", m.Host, err)
				}
			}
		}
		a.bind(flag, m.Host, path.Clean(m.Path))
	}
	return nil
}

// checkPlace refuses places that would hide or need parts of the system.
func checkPlace(what, p string) error {
	taken := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys", "/run", "/var/tmp"}
	if !path.IsAbs(p) || path.Clean(p) == "/" || path.Clean(p) == "/tmp" || path.Clean(p) == home ||
		slices.ContainsFunc(taken, func(t string) bool { return within(path.Clean(p), t) }) {
		return fmt.Errorf("%s %q: use an absolute path of its own, such as %s", what, p, defaultWorkdir)
	}
	return nil
}
