package envtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Each check fails if its limit is not enforced. If the driver's key records that it
// cannot enforce the limit, the check is skipped.
var enforcedChecks = []check{
	{name: "bytes of every writable directory", fn: bytesLimited, adjust: func(s *env.SandboxSpec) { s.Limits.DiskBytes = 64 << 20 }},
	{name: "files of every writable directory", fn: filesLimited, adjust: func(s *env.SandboxSpec) { s.Limits.DiskBytes = 64 << 20 }},
	{name: "size of a file", fn: fileSizeLimited, adjust: func(s *env.SandboxSpec) { s.Limits.DiskBytes = 64 << 20 }},
	{name: "open files", fn: openFilesLimited, adjust: func(s *env.SandboxSpec) { s.Limits.OpenFiles = 50 }},
	{name: "processor time", fn: cpuTimeLimited, adjust: func(s *env.SandboxSpec) { s.Limits.CPUTime = time.Second }},
	{name: "processors", fn: cpusLimited, adjust: func(s *env.SandboxSpec) { s.Limits.CPUs = 1 }},
	{name: "threads", fn: threadsLimited, adjust: func(s *env.SandboxSpec) { s.Limits.Processes = 40 }},
	{name: "memory outside processes", fn: unattachedMemory, adjust: func(s *env.SandboxSpec) { s.Limits.MemoryBytes = 200 << 20 }},
	{name: "memory in shared mappings", fn: sharedMemory, adjust: func(s *env.SandboxSpec) { s.Limits.MemoryBytes = 200 << 20 }},
	{name: "keys and processes of the host", fn: hostSecrets},
	{name: "resource limits that the key names", fn: namedLimits, adjust: func(s *env.SandboxSpec) {
		s.Limits = env.Limits{Processes: 40, OpenFiles: 50, CPUTime: time.Minute, MemoryBytes: 200 << 20}
	}},
}

// isUnenforced reports whether a limit is not enforced in this suite, and logs why.
func (f *fixture) isUnenforced(t *testing.T, limit string) bool {
	t.Helper()
	if slices.Contains(f.Key().Unenforced, limit) {
		t.Logf("%s does not enforce %s and records that", f.suite.Driver.Name(), limit)
		return true
	}
	if slices.Contains(f.suite.UnenforcedLimits, limit) {
		t.Logf("%s: this test has nothing that enforces %s", f.suite.Driver.Name(), limit)
		return true
	}
	return false
}

// expectOutput runs a Python program that must exit with 0 and print want.
func (f *fixture) expectOutput(t *testing.T, program, want string) {
	t.Helper()
	if r := f.python(t, patience, program); string(r.Output) != want || r.ExitCode != 0 {
		t.Errorf("exit %d, limit %q, output %.500q, want %q", r.ExitCode, r.Limit, r.Output, want)
	}
}

// places lists the writable directories. With a disk limit of 64 MiB, each of them must be full before 64 MiB.
const places = `
import errno, os
places = (os.getcwd(), "/tmp", os.path.expanduser("~"), "/dev/shm")
`

func bytesLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "disk") {
		return
	}
	f.expectOutput(t, places+`
for p in places:
    n = 0
    try:
        with open(p + "/big", "wb") as out:
            while n < 64 << 20:
                n += out.write(bytes(1 << 20))
                out.flush()
        print(p, "took", n)
    except OSError as e:
        if e.errno != errno.ENOSPC: print(p, e)
    os.unlink(p + "/big")
`, "")
}

func filesLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "inodes") {
		return
	}
	f.expectOutput(t, places+`
for p in places:
    os.mkdir(p + "/many")
    n = 0
    try:
        while n < 20000:
            os.close(os.open("%s/many/%d" % (p, n), os.O_CREAT | os.O_WRONLY))
            n += 1
        print(p, "took", n)
    except OSError as e:
        if e.errno != errno.ENOSPC: print(p, e)
    for i in range(n):
        os.unlink("%s/many/%d" % (p, i))
    os.rmdir(p + "/many")
open("after", "w").write("room again")
`, "")
}

func fileSizeLimited(t *testing.T, f *fixture) {
	f.expectOutput(t, `
import errno, os
for size in (64 << 20, (64 << 20) + 1):
    try:
        with open("sparse", "wb") as out:
            out.truncate(size)
        print("made", size)
    except OSError as e:
        print(errno.errorcode[e.errno])
`, fmt.Sprintf("made %d\nEFBIG\n", 64<<20))
}

func openFilesLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "open_files") {
		return
	}
	f.expectOutput(t, `
import errno, os, resource
held = []
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
    print("raised")
except (OSError, ValueError):
    pass
try:
    while len(held) < 1000: held.append(os.open("/dev/null", os.O_RDONLY))
    print("opened", len(held))
except OSError as e:
    print(errno.errorcode[e.errno], max(held) == 49)
`, "EMFILE True\n")
}

func cpuTimeLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "cpu_time") {
		return
	}
	r := f.python(t, patience, "while True: pass")
	if r.TimedOut || r.ExitCode != 137 && r.ExitCode != 152 {
		t.Errorf("timed out %v, exit %d", r.TimedOut, r.ExitCode)
	}
}

func cpusLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "cpus") {
		return
	}
	r := f.python(t, patience, `
import glob, os, time
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
def read(*names): # files of the control group, if they are visible
    return [open(f).read() for n in names for f in glob.glob("/sys/fs/cgroup/" + n)]
quota = " ".join(read("cpu.max") or read("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")).split()
bound = len(os.sched_getaffinity(0))
if len(quota) == 2 and quota[0].isdigit():
    bound = min(bound, int(quota[0]) / int(quota[1]))
end = time.monotonic() + 2
children = []
for i in range(4):
    r, w = os.pipe()
    if os.fork() == 0:
        while time.monotonic() < end: pass
        os.write(w, str(time.process_time()).encode())
        os._exit(0)
    children.append(r)
for i in children: os.wait()
used = sum(float(os.read(r, 100)) for r in children)
print("within" if used < 2.7 and bound <= 1 else (used, bound))
`)
	// On a busy machine, the programs would not get more time even without the limit. In that
	// case only the bound is meaningful.
	if string(r.Output) != "within\n" {
		t.Errorf("CPU seconds of four programs that ran for two seconds, and the number of processors: %q", r.Output)
	}
}

func threadsLimited(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "processes") {
		return
	}
	// A cgroup or an rlimit may allow a few threads more than the limit, so the watchdog must
	// end the program.
	r := f.python(t, patience, `
import threading, time
for i in range(60):
    threading.Thread(target=time.sleep, args=(18,), daemon=True).start()
time.sleep(15)
print("60 threads")
`)
	if r.TimedOut || r.Limit != "processes" {
		t.Errorf("60 threads of 40: limit %q, timed out %v, output %.300q", r.Limit, r.TimedOut, r.Output)
	}
	r = f.python(t, patience, `
import threading, time
for i in range(400):
    threading.Thread(target=time.sleep, args=(18,), daemon=True).start()
time.sleep(15)
print("400 threads")
`)
	if r.TimedOut || r.Limit != "processes" && !strings.Contains(string(r.Output), "can't start new thread") {
		t.Errorf("limit %q, timed out %v, output %.300q", r.Limit, r.TimedOut, r.Output)
	}
	if out := f.sh(t, "echo alive"); out != "alive\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// namedLimits checks, in a program, every RLIMIT_ that the key names, because the watchdog
// could hide that one of them is missing. Each must be close to the requested limit and far
// below the host's default.
func namedLimits(t *testing.T, f *fixture) {
	maxima := map[string]int{"RLIMIT_NPROC": 200, "RLIMIT_NOFILE": 50, "RLIMIT_CPU": 100, "RLIMIT_AS": 1 << 30}
	for limit, mechanism := range f.Key().Limits {
		for _, word := range strings.FieldsFunc(mechanism, func(r rune) bool { return r == ' ' || r == ',' }) {
			if strings.HasPrefix(word, "RLIMIT_") {
				f.expectOutput(t, fmt.Sprintf("import resource; n = resource.getrlimit(resource.%s)[1]; print(%q, n if n > %d else 'held')", word, limit, maxima[word]), limit+" held\n")
			}
		}
	}
}

// unattachedMemory allocates memory that is not part of the size of any process.
func unattachedMemory(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "memory") {
		return
	}
	r := f.python(t, patience, `
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
try:
    os.memfd_create("x")
    print("a file without a name", flush=True)
except OSError:
    pass
for i in range(20):
    size = 50 << 20
    segment = libc.shmget(0, size, 0o1600)
    if segment < 0: break
    at = libc.shmat(segment, None, 0)
    ctypes.memset(at, 1, size)
    libc.shmdt(ctypes.c_void_p(at))
    time.sleep(0.3)
print("held", i)
`)
	if r.Limit != "memory" && r.ExitCode != 137 || strings.Contains(string(r.Output), "held 19") || strings.Contains(string(r.Output), "without a name") {
		t.Errorf("limit %q, exit %d, output %.300q", r.Limit, r.ExitCode, r.Output)
	}
	if out := f.sh(t, "echo alive; tail -n +2 /proc/sysvipc/shm | wc -l"); !strings.HasPrefix(out, "alive\n") {
		t.Errorf("afterwards: %q", out)
	}
}

func sharedMemory(t *testing.T, f *fixture) {
	if f.isUnenforced(t, "memory") {
		return
	}
	r := f.python(t, patience, `
import mmap, time
hold = []
for i in range(60):
    m = mmap.mmap(-1, 10 << 20)
    m.write(bytes(10 << 20))
    hold.append(m)
    time.sleep(0.01)
print("held", i)
`)
	if r.Limit != "memory" && r.ExitCode != 137 || strings.Contains(string(r.Output), "held") {
		t.Errorf("limit %q, exit %d, output %.300q", r.Limit, r.ExitCode, r.Output)
	}
}

// hostSecrets looks for secrets and processes of the host.
func hostSecrets(t *testing.T, f *fixture) {
	f.expectOutput(t, `
import ctypes, os, platform, stat
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
for n in numbers: # add_key, request_key, keyctl(KEYCTL_GET_KEYRING_ID, session)
    args = (0, -3, 1, 0) if n == numbers[2] else (b"user", b"x", b"y", 1, -3)
    if libc.syscall(n, *args) != -1: print("system call", n)
try:
    print(open("/proc/keys").read(), end="") if open("/proc/keys").read() else None
except OSError:
    pass
if len([p for p in os.listdir("/proc") if p.isdigit()]) > 10: print("many processes")
for p in ("/var/run/docker.sock", "/run/docker.sock", "/root/.ssh", "/root/.docker", "/proc/1/root/etc/shadow", "/etc/shadow"):
    try:
        if not stat.S_ISSOCK(os.stat(p).st_mode): open(p).close() if os.path.isfile(p) else os.listdir(p)
        print("reached", p)
    except OSError:
        pass
`, "")
}
