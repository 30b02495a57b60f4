package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "bubblewrap",
		Summary: "namespaces of the Linux kernel through bwrap: no daemon, no image, starts in milliseconds",
		New:     func(any, struct{}) (env.Driver, error) { return &bubblewrap{}, nil },
	})
}

// bubblewrap starts each sandbox as a bwrap child: the host's /usr read-only,
// sized tmpfs for everything writable, all namespaces unshared, the guest as
// first process under an unprivileged user.
type bubblewrap struct {
	pythons interpreters
}

func (*bubblewrap) Name() string { return "bubblewrap" }

// hostUser is the host's uid and gid of sandboxed code when tracesmith runs as
// root: far above what systems allot, owner of nothing.
const hostUser = 2_000_000_000

// Start implements env.Driver.
func (d *bubblewrap) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("starting a bubblewrap sandbox: bwrap is not installed: install it (Debian, Ubuntu: apt install bubblewrap) or choose another --sandbox")
	}
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, defaultWorkdir))
	spec.Limits = withDefaults(spec.Limits)
	python, err := d.pythons.find(ctx, spec.Python)
	if err != nil {
		return nil, fmt.Errorf("starting a bubblewrap sandbox: %w", err)
	}
	var userns error
	for _, start := range startWays() {
		s, err := d.start(ctx, bwrap, spec, python, start)
		if err == nil {
			return s, nil
		}
		if start.needsUserns && errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			userns = err
			continue
		}
		if userns != nil { // that there are none matters more than what fails without
			err = fmt.Errorf("making a user namespace: %w (and without one: %v)", userns, err) //nolint:errorlint // one cause
		}
		return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", err, bubblewrapRemedy(err))
	}
	return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", userns, bubblewrapRemedy(userns))
}

// startWay is how bwrap comes by its privileges.
type startWay struct {
	root        bool // the guest starts as root of the namespace and drops to user
	needsUserns bool
	user        int // uid and gid of programs as seen inside
}

// attributes is what the stage before bwrap starts in: a mount namespace, of a
// user namespace where there is one, in which it is root.
func (w startWay) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	switch {
	case w.needsUserns:
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: insideUser, HostID: hostUser, Size: 1}}
		a.UidMappings, a.GidMappings, a.GidMappingsEnableSetgroups = ids, ids, true
		a.Cloneflags |= syscall.CLONE_NEWUSER
	case !w.root:
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		a.Cloneflags |= syscall.CLONE_NEWUSER
	}
	return a
}

// startWays lists the ways to try. Root makes a user namespace in which programs
// are hostUser; where the kernel refuses, they become hostUser without one.
func startWays() []startWay {
	if os.Getuid() != 0 {
		return []startWay{{user: insideUser}}
	}
	return []startWay{{root: true, needsUserns: true, user: insideUser}, {root: true, user: hostUser}}
}

func (d *bubblewrap) start(ctx context.Context, bwrap string, spec env.SandboxSpec, python interpreter, way startWay) (env.Sandbox, error) {
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	a := &bwrapArgs{}
	defer a.close()
	if err := a.build(spec, python, binary, way); err != nil {
		return nil, err
	}
	serve := []string{"-pinned"}
	if way.root {
		serve = append(serve, "-drop", strconv.Itoa(way.user), "-own", spec.Workdir+":"+home+":/tmp")
	}
	a.add("--", guestPath)
	a.add(guestArgs(spec.Label, serve...)...)
	cmd := exec.Command(binary, slices.Concat([]string{guest.StageArg}, a.stage, []string{"--", bwrap}, a.args)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"GOMAXPROCS=2"}, "/", a.files
	cmd.SysProcAttr = way.attributes()
	c, err := startChild(cmd, func(cmd *exec.Cmd) error { return startPinned(cmd, spec.Limits.CPUs) })
	if err != nil {
		return nil, err
	}
	perSandbox := countsPerNamespace() && way.user == insideUser
	client, err := c.connect(ctx, guest.Config{
		Workdir: spec.Workdir, Env: environment(home, python.search(), spec.Env), Limits: spec.Limits, LimitProcesses: perSandbox,
		Outside: c.killer,
	})
	if err != nil {
		return nil, err
	}
	return &sandbox{
		Client: client,
		key:    bubblewrapKey(spec.Limits, python.Version, way, perSandbox),
		destroy: func(context.Context) error {
			c.stop()
			return nil
		},
	}, nil
}

// Reap implements env.Driver.
func (d *bubblewrap) Reap(ctx context.Context) (int, error) { return env.RemoveLeftovers(ctx, d) }

// Leftovers implements env.Keeper. A sandbox dies with its owner, so it is rare
// that anything is there.
func (*bubblewrap) Leftovers(ctx context.Context) ([]env.Leftover, error) { return orphans(ctx) }

func bubblewrapKey(l env.Limits, version string, way startWay, perSandbox bool) schemas.EnvKey {
	k := schemas.EnvKey{Driver: "bubblewrap", Python: version, Limits: map[string]string{
		"network":    "network namespace",
		"memory":     "guest watchdog, RLIMIT_AS",
		"disk":       "sized tmpfs",
		"inodes":     "tmpfs nr_inodes",
		"processes":  "guest watchdog",
		"cpu_time":   "RLIMIT_CPU",
		"open_files": "RLIMIT_NOFILE",
	}}
	if perSandbox {
		k.Limits["processes"] += ", RLIMIT_NPROC"
	}
	if cores, pinned := pick(l.CPUs); pinned {
		k.Limits["cpus"] = fmt.Sprintf("bound to %d processors", cores.Count())
	} else {
		k.Limits["cpus"] = "host has no more"
	}
	lift(&k, l)
	if way.root && !way.needsUserns {
		k.Unenforced = append(k.Unenforced, "user namespace")
	}
	return k
}

// countsPerNamespace: since Linux 5.14 RLIMIT_NPROC counts the processes of one
// user namespace, before all of one user on the host.
func countsPerNamespace() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}

// bubblewrapRemedy explains what usually is behind a refusal.
func bubblewrapRemedy(err error) string {
	text := err.Error()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(text, "ermission") || strings.Contains(text, "not permitted") || strings.Contains(text, "namespace") {
		return " (does this system allow user namespaces? See user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; a container must be privileged for it; else choose --sandbox docker)"
	}
	return ""
}

// bwrapArgs is a command line with the files it names by descriptor.
type bwrapArgs struct {
	args  []string
	files []*os.File
	dirs  []string // made so far
	stage []string // file systems to make before, see guest.StageArg
}

func (a *bwrapArgs) add(args ...string) { a.args = append(a.args, args...) }

func (a *bwrapArgs) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// dir makes a directory everybody may enter; bwrap's own parents are private.
func (a *bwrapArgs) dir(p string) {
	for _, d := range append(parents(p), p) {
		if !slices.Contains(a.dirs, d) {
			a.dirs = append(a.dirs, d)
			a.add("--perms", "0755", "--dir", d)
		}
	}
}

// bind shows a host path, making the parents of the place.
func (a *bwrapArgs) bind(flag, host, place string) {
	if p := path.Dir(place); p != "/" {
		a.dir(p)
	}
	a.add(flag, host, place)
}

// tmpfs puts a file system into place that holds so many bytes, and files in
// proportion; below zero there is no limit.
func (a *bwrapArgs) tmpfs(place, perms string, size int64) {
	a.dir(place)
	files := int64(0) // no limit to the kernel
	if size >= 0 {
		files = inodes(size)
	}
	a.add("--bind", guest.StagePlace(len(a.stage)), place)
	a.stage = append(a.stage, fmt.Sprintf("%d:%d:%s", max(size, 0), files, perms))
}

// file puts a small read-only file into place.
func (a *bwrapArgs) file(place, content string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	a.files = append(a.files, r)
	a.add("--perms", "0644", "--file", strconv.Itoa(2+len(a.files)), place)
	_, err = w.WriteString(content) // far below what a pipe holds
	return errors.Join(err, w.Close())
}
