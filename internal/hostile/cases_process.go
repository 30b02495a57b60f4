package hostile

import "time"

// processCases start processes that must not escape, or attack the guest: tracesmith's own process in
// the sandbox, which is process 1 and starts the commands.
var processCases = []Case{
	{Name: "kills the guest", Surface: Bash, Text: `for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "reads the guest's command line", Surface: Bash, Text: `tr '\0' ' ' </proc/1/cmdline; echo; echo on`, Want: Want{Has: []string{"on\n"}, Lacks: []string{"owner", "label", "hostile"}}}, // its arguments: -owner PROCESS -label hostile
	{Name: "signals the guest while it starts programs", Surface: Bash, Text: `for n in 1 2 3 4 5 6 7 8; do (for i in $(seq 200); do for s in 32 33 34 35 64; do kill -$s 1; done; done) 2>/dev/null & done; wait; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "kills everything", Surface: Bash, Text: `echo on; (kill -9 -1; sleep 100)`, Want: Want{Exit: exits(137)}},
	{Name: "terminates everything", Surface: Bash, Limit: 2 * time.Second, Text: `kill -TERM -1; kill -HUP -1; echo on`, Want: Want{Time: Either}},
	{Name: "stops everything", Surface: Bash, Damages: true, Limit: time.Second, Text: `kill -STOP -1; echo on`, Want: Want{Time: Either}},
	{Name: "kills its group", Surface: Bash, Limit: 2 * time.Second, Text: `kill -9 0; sleep 100`, Want: Want{Time: Either}},
	{Name: "traces the guest", Surface: Bash, Text: python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("attach", libc.ptrace(16, 1, 0, 0), "seize", libc.ptrace(0x4206, 1, 0, 0))
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps") + tuple("/proc/1/fd/%d" % n for n in range(100)):
    try:
        os.close(os.open(path, os.O_RDWR))
        print("opened", path)
    except OSError:
        pass`), Want: Want{Exit: exits(0), Has: []string{"attach -1 seize -1\n"}, Lacks: []string{"opened"}}},
	{Name: "stops its parent", Surface: Bash, Harmless: true, Limit: time.Second, Text: python(`
import os, signal, time
os.kill(os.getppid(), signal.SIGSTOP)
time.sleep(100)`), Want: Want{Time: TimesOut}},
	{Name: "first thread ends", Surface: Bash, Harmless: true, Limit: time.Second, Text: python(firstThreadEnds), Want: Want{Time: TimesOut}},
	{Name: "first thread of a command ends", Surface: Run, Harmless: true, Limit: time.Second, Text: python(firstThreadEnds), Want: Want{Time: TimesOut}},
	{Name: "stops itself", Surface: Bash, Harmless: true, Limit: time.Second, Text: `python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'`, Want: Want{Time: TimesOut}},
	{Name: "ignores signals", Surface: Bash, Harmless: true, Limit: time.Second, Text: `(trap '' TERM INT HUP QUIT; while :; do sleep 1; done)`, Want: Want{Time: TimesOut}},
	{Name: "leaves a background job", Surface: Bash, Leaves: true, Text: `sleep 1000 & disown; echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "forks and waits", Surface: Bash, Harmless: true, Limit: time.Second, Text: `(sleep 1000 &) ; sleep 1000 & sleep 1000`, Want: Want{Time: TimesOut}},
	{Name: "daemon that holds the pipe", Surface: Bash, Leaves: true, Text: `setsid sh -c 'trap "" HUP TERM; sleep 1000; sleep 1000' & echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "daemon of a command that times out", Surface: Bash, Harmless: true, Limit: time.Second, Text: python(`
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 300)
        os.chdir("/")
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
time.sleep(1000)`), Want: Want{Time: TimesOut}},
	{Name: "processes that change their tag", Surface: Bash, Limit: time.Second, Text: python(tagChangers), Want: Want{Time: TimesOut}},
	{Name: "processes of a script that change their tag", Surface: Run, Limit: time.Second, Text: python(tagChangers), Want: Want{Time: TimesOut}},
	{Name: "prints during later commands", Surface: Bash, Leaves: true, Text: `(while :; do echo noise; sleep 0.01; done) & echo on`, Want: Want{Exit: exits(0)}},
	{Name: "forges frames during later commands", Surface: Bash, Leaves: true, Text: `(while :; do printf '\e]7717;A;2;%s;1;1;MTAw\a\e]77' $$; sleep 0.01; done) & echo on`, Want: Want{Exit: exits(0)}},
	{Name: "fork bomb in the shell", Surface: Bash, Rare: 10, Limit: 5 * time.Second, Text: `b() { b | b & }; b; sleep 100`, Want: Want{Time: Either}},
	{Name: "fork bomb in Python", Surface: Bash, Rare: 10, Limit: 5 * time.Second, Text: python(`
import os
while True:
    try:
        os.fork()
    except OSError:
        pass`), Want: Want{Time: Either}},
	{Name: "fork bomb that detaches", Surface: Run, Rare: 10, Limit: 3 * time.Second, Text: python(`
import os
while True:
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
    except OSError:
        pass`), Leaves: true, Want: Want{Time: Either}},
	{Name: "fork bomb that starts sessions", Surface: Bash, Rare: 10, Limit: 5 * time.Second, Text: python(sessionBomb), Want: Want{Time: Either}},
	{Name: "fork bomb in the tests", Surface: Eval, Rare: 10, Limit: 5 * time.Second, Text: python(sessionBomb), Want: Want{Time: Either}},
	{Name: "bomb of programs", Surface: Bash, Rare: 10, Limit: 5 * time.Second, Text: `b() { while :; do sh -c 'sleep 100; :' & done; }; for i in 1 2 3 4; do b & done 2>/dev/null; wait`, Want: Want{Time: Either}},
	{Name: "bomb of small threads", Surface: Bash, Rare: 5, Limit: 5 * time.Second, Text: python(`
import threading, time
threading.stack_size(64 << 10)
def more():
    while True:
        try:
            threading.Thread(target=more).start()
        except RuntimeError:
            pass
more()`), Want: Want{Time: Either}},
	{Name: "bomb of threads", Surface: Bash, Rare: 5, Limit: 5 * time.Second, Text: python(`
import threading, time
while True:
    try:
        threading.Thread(target=time.sleep, args=(100,)).start()
    except RuntimeError:
        pass`), Want: Want{Time: Either}},
	{Name: "ten thousand children", Surface: Bash, Rare: 30, Limit: 300 * time.Second, Text: python(`
import os
for i in range(10000):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
print("all")`), Want: Want{Exit: exits(0), Has: []string{"all\n"}}},
	{Name: "zombies", Surface: Bash, Limit: time.Second, Text: python(`
import os, time
for i in range(60):
    if os.fork() == 0:
        os._exit(0)
time.sleep(100)`), Want: Want{Time: TimesOut}},
	{Name: "storm of programs", Surface: Bash, Rare: 2, Limit: time.Second, Text: python(`
import os
while True:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)`), Want: Want{Time: TimesOut}},
	{Name: "storm of vanishing programs", Surface: Bash, Rare: 5, Limit: time.Second, Text: `while :; do (setsid true &); done`, Want: Want{Time: Either}},
	{Name: "lowers its priority", Surface: Bash, Damages: true, Limit: time.Second, Text: `renice -n 19 $$ >/dev/null; nice -n 19 sh -c 'while :; do :; done'`, Want: Want{Time: TimesOut}},
	{Name: "makes itself the first OOM victim", Surface: Bash, Damages: true, Text: `echo 1000 >/proc/$$/oom_score_adj; echo -1000 2>/dev/null >/proc/1/oom_score_adj; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "locks", Surface: Bash, Leaves: true, Text: `for f in $(find /tmp/.tracesmith* -type f); do (flock -x 9; sleep 1000) 9<$f & done; echo on`, Want: Want{Exit: exits(0)}},
	{Name: "watches files", Surface: Bash, Leaves: true, Text: python(`
import ctypes, os
libc = ctypes.CDLL(None)
fd = libc.inotify_init()
for path in (b"/tmp", b"/testbed", b"/proc"):
    libc.inotify_add_watch(fd, path, 0xfff)
if os.fork() == 0:
    while True:
        os.read(fd, 4096)`)},
	{Name: "reads a pipe without a writer", Surface: Bash, Harmless: true, Limit: time.Second, Text: `rm -f fifo; mkfifo fifo; cat fifo`, Want: Want{Time: TimesOut}},
	{Name: "sets the clock", Surface: Bash, Text: `date -s '2001-01-01' 2>&1 | grep -c 'not permitted'; echo on`, Want: Want{Has: []string{"1\n", "on\n"}}},
	{Name: "sleeps forever", Surface: Bash, Harmless: true, Limit: time.Second, Text: `sleep infinity`, Want: Want{Time: TimesOut}},
	{Name: "creates namespaces", Surface: Bash, Text: `unshare -Ur true 2>/dev/null && echo made; unshare -p true 2>/dev/null && echo made; echo on`, Want: Want{Has: []string{"on\n"}, Lacks: []string{"made"}}},
}

// firstThreadEnds looks dead because its first thread ends, but another thread continues.
const firstThreadEnds = `
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)`

// sessionBomb starts a session in each of its processes. Schedulers that divide processor
// time among sessions therefore give it most of the time.
const sessionBomb = `
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass`

// tagChangers change their tag, the resource limit by which the guest recognizes the processes of a
// command.
const tagChangers = `
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
