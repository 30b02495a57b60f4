package hostile

import "time"

// processCases start what must not get away, or turn on what keeps it.
var processCases = []Case{
	{Name: "kills the guest", Door: Bash, Text: `for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "reads the guest's command line", Door: Bash, Text: `tr '\0' ' ' </proc/1/cmdline; echo; echo on`, Want: Want{Has: []string{"on\n"}, Lacks: []string{"owner", "label", "hostile"}}},
	{Name: "signals the guest while it starts programs", Door: Bash, Text: `for n in 1 2 3 4 5 6 7 8; do (for i in $(seq 200); do for s in 32 33 34 35 64; do kill -$s 1; done; done) 2>/dev/null & done; wait; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "kills everything", Door: Bash, Text: `echo on; (kill -9 -1; sleep 100)`, Want: Want{Exit: exits(137)}},
	{Name: "terminates everything", Door: Bash, Limit: 2 * time.Second, Text: `kill -TERM -1; kill -HUP -1; echo on`, Want: Want{Time: Either}},
	{Name: "stops everything", Door: Bash, Spoils: true, Limit: time.Second, Text: `kill -STOP -1; echo on`, Want: Want{Time: Either}},
	{Name: "kills its group", Door: Bash, Limit: 2 * time.Second, Text: `kill -9 0; sleep 100`, Want: Want{Time: Either}},
	{Name: "traces the guest", Door: Bash, Text: python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("attach", libc.ptrace(16, 1, 0, 0), "seize", libc.ptrace(0x4206, 1, 0, 0))
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps") + tuple("/proc/1/fd/%d" % n for n in range(100)):
    try:
        os.close(os.open(path, os.O_RDWR))
        print("opened", path)
    except OSError:
        pass`), Want: Want{Exit: exits(0), Has: []string{"attach -1 seize -1\n"}, Lacks: []string{"opened"}}},
	{Name: "stops its parent", Door: Bash, Harmless: true, Limit: time.Second, Text: python(`
import os, signal, time
os.kill(os.getppid(), signal.SIGSTOP)
time.sleep(100)`), Want: Want{Time: TimesOut}},
	{Name: "first thread ends", Door: Bash, Harmless: true, Limit: time.Second, Text: python(firstThreadEnds), Want: Want{Time: TimesOut}},
	{Name: "first thread of a command ends", Door: Run, Harmless: true, Limit: time.Second, Text: python(firstThreadEnds), Want: Want{Time: TimesOut}},
	{Name: "stops itself", Door: Bash, Harmless: true, Limit: time.Second, Text: `python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'`, Want: Want{Time: TimesOut}},
	{Name: "ignores signals", Door: Bash, Harmless: true, Limit: time.Second, Text: `(trap '' TERM INT HUP QUIT; while :; do sleep 1; done)`, Want: Want{Time: TimesOut}},
	{Name: "forks and lets go", Door: Bash, Leaves: true, Text: `sleep 1000 & disown; echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "forks and waits", Door: Bash, Harmless: true, Limit: time.Second, Text: `(sleep 1000 &) ; sleep 1000 & sleep 1000`, Want: Want{Time: TimesOut}},
	{Name: "daemon that holds the pipe", Door: Bash, Leaves: true, Text: `setsid sh -c 'trap "" HUP TERM; sleep 1000; sleep 1000' & echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "daemon of a command that times out", Door: Bash, Harmless: true, Limit: time.Second, Text: python(`
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 300)
        os.chdir("/")
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
time.sleep(1000)`), Want: Want{Time: TimesOut}},
	{Name: "deserters", Door: Bash, Limit: time.Second, Text: python(deserters), Want: Want{Time: TimesOut}},
	{Name: "deserters of a command", Door: Run, Limit: time.Second, Text: python(deserters), Want: Want{Time: TimesOut}},
	{Name: "speaks during later commands", Door: Bash, Leaves: true, Text: `(while :; do echo noise; sleep 0.01; done) & echo on`, Want: Want{Exit: exits(0)}},
	{Name: "frames during later commands", Door: Bash, Leaves: true, Text: `(while :; do printf '\e]7717;A;2;%s;1;1;MTAw\a\e]77' $$; sleep 0.01; done) & echo on`, Want: Want{Exit: exits(0)}},
	{Name: "fork bomb of the shell", Door: Bash, Rare: 10, Limit: 5 * time.Second, Text: `b() { b | b & }; b; sleep 100`, Want: Want{Time: Either}},
	{Name: "fork bomb of Python", Door: Bash, Rare: 10, Limit: 5 * time.Second, Text: python(`
import os
while True:
    try:
        os.fork()
    except OSError:
        pass`), Want: Want{Time: Either}},
	{Name: "fork bomb that runs away", Door: Run, Rare: 10, Limit: 3 * time.Second, Text: python(`
import os
while True:
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
    except OSError:
        pass`), Leaves: true, Want: Want{Time: Either}},
	{Name: "fork bomb of sessions", Door: Bash, Rare: 10, Limit: 5 * time.Second, Text: python(sessionBomb), Want: Want{Time: Either}},
	{Name: "fork bomb of the tests", Door: Eval, Rare: 10, Limit: 5 * time.Second, Text: python(sessionBomb), Want: Want{Time: Either}},
	{Name: "bomb of programs", Door: Bash, Rare: 10, Limit: 5 * time.Second, Text: `b() { while :; do sh -c 'sleep 100; :' & done; }; for i in 1 2 3 4; do b & done 2>/dev/null; wait`, Want: Want{Time: Either}},
	{Name: "bomb of small threads", Door: Bash, Rare: 5, Limit: 5 * time.Second, Text: python(`
import threading, time
threading.stack_size(64 << 10)
def more():
    while True:
        try:
            threading.Thread(target=more).start()
        except RuntimeError:
            pass
more()`), Want: Want{Time: Either}},
	{Name: "bomb of threads", Door: Bash, Rare: 5, Limit: 5 * time.Second, Text: python(`
import threading, time
while True:
    try:
        threading.Thread(target=time.sleep, args=(100,)).start()
    except RuntimeError:
        pass`), Want: Want{Time: Either}},
	{Name: "ten thousand children", Door: Bash, Rare: 30, Limit: 300 * time.Second, Text: python(`
import os
for i in range(10000):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
print("all")`), Want: Want{Exit: exits(0), Has: []string{"all\n"}}},
	{Name: "zombies", Door: Bash, Limit: time.Second, Text: python(`
import os, time
for i in range(60):
    if os.fork() == 0:
        os._exit(0)
time.sleep(100)`), Want: Want{Time: TimesOut}},
	{Name: "storm of programs", Door: Bash, Rare: 2, Limit: time.Second, Text: python(`
import os
while True:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)`), Want: Want{Time: TimesOut}},
	{Name: "storm of vanishing programs", Door: Bash, Rare: 5, Limit: time.Second, Text: `while :; do (setsid true &); done`, Want: Want{Time: Either}},
	{Name: "lowers its priority", Door: Bash, Spoils: true, Limit: time.Second, Text: `renice -n 19 $$ >/dev/null; nice -n 19 sh -c 'while :; do :; done'`, Want: Want{Time: TimesOut}},
	{Name: "makes itself the first to be killed", Door: Bash, Spoils: true, Text: `echo 1000 >/proc/$$/oom_score_adj; echo -1000 2>/dev/null >/proc/1/oom_score_adj; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "locks", Door: Bash, Leaves: true, Text: `for f in $(find /tmp/.tracesmith* -type f); do (flock -x 9; sleep 1000) 9<$f & done; echo on`, Want: Want{Exit: exits(0)}},
	{Name: "watches files", Door: Bash, Leaves: true, Text: python(`
import ctypes, os
libc = ctypes.CDLL(None)
fd = libc.inotify_init()
for path in (b"/tmp", b"/testbed", b"/proc"):
    libc.inotify_add_watch(fd, path, 0xfff)
if os.fork() == 0:
    while True:
        os.read(fd, 4096)`)},
	{Name: "reads a pipe nobody writes", Door: Bash, Harmless: true, Limit: time.Second, Text: `rm -f fifo; mkfifo fifo; cat fifo`, Want: Want{Time: TimesOut}},
	{Name: "sets the clock", Door: Bash, Text: `date -s '2001-01-01' 2>&1 | grep -c 'not permitted'; echo on`, Want: Want{Has: []string{"1\n", "on\n"}}},
	{Name: "sleeps for ever", Door: Bash, Harmless: true, Limit: time.Second, Text: `sleep infinity`, Want: Want{Time: TimesOut}},
	{Name: "namespaces of its own", Door: Bash, Text: `unshare -Ur true 2>/dev/null && echo made; unshare -p true 2>/dev/null && echo made; echo on`, Want: Want{Has: []string{"on\n"}, Lacks: []string{"made"}}},
}

// firstThreadEnds is a process that looks dead and lives on in another thread.
const firstThreadEnds = `
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)`

// sessionBomb leads a session with each of its processes: schedulers that share
// the processors among sessions give most of them to it.
const sessionBomb = `
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass`

// deserters change by what they would be known.
const deserters = `
import os, resource, time
soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
for n in (1, 2, 5, 1000, hard // 2, hard - 1):
    if os.fork() == 0:
        os.setsid()
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (max(hard - n, 0),) * 2)
        except (ValueError, OSError):
            pass
        time.sleep(1000)
time.sleep(1000)`
