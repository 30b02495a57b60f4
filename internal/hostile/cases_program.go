package hostile

import "time"

// evalCases replace the task's tests.
var evalCases = []Case{
	{Name: "tests that lock the temporary files", Surface: Eval, Damages: true, Text: `chmod 000 /tmp 2>/dev/null; echo end`, Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "tests that fail", Surface: Eval, Harmless: true, Text: `echo no; exit 3`, Want: Want{Exit: exits(3), Has: []string{"no\n"}}},
	{Name: "tests that never end", Surface: Eval, Harmless: true, Limit: time.Second, Text: `sleep 1000`, Want: Want{Time: TimesOut}},
	{Name: "tests that ignore signals", Surface: Eval, Harmless: true, Limit: time.Second, Text: `trap '' TERM INT HUP; while :; do sleep 1; done`, Want: Want{Time: TimesOut}},
	{Name: "tests that leave a daemon", Surface: Eval, Leaves: true, Text: `setsid sleep 1000 & echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "tests that stop themselves", Surface: Eval, Limit: time.Second, Text: `kill -STOP $$ $PPID`, Want: Want{Time: TimesOut}},
	{Name: "tests that kill everything", Surface: Eval, Text: `(kill -9 -1); sleep 100`, Want: Want{Exit: exits(137)}},
	{Name: "tests that flood", Surface: Eval, Harmless: true, Limit: time.Second, Text: `yes`, Want: Want{Time: TimesOut, MaxBytes: 70_000}},
	{Name: "tests that forge frames", Surface: Eval, Harmless: true, Text: `printf '\e]7717;A;1;1;1;1;MTAw\a(Pdb) '; echo end`, Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "tests that remove their hooks", Surface: Eval, Text: `rm -rf /tmp/* /tmp/.??* 2>/dev/null; echo end`, Want: Want{Has: []string{"end\n"}}},
	{Name: "tests that fill the disk", Surface: Eval, Damages: true, Rare: 5, Limit: 20 * time.Second, Text: `for d in /testbed /tmp; do cat /dev/zero >$d/full 2>/dev/null; done; echo end`, Want: Want{Time: Either}},
	{Name: "tests that exit with 124", Surface: Eval, Harmless: true, Text: `exit 124`, Want: Want{Exit: exits(124)}},
}

// runCases use the sandbox without a tool.
var runCases = []Case{
	{Name: "command that exits with 124", Surface: Run, Harmless: true, Text: `exit 124`, Want: Want{Exit: exits(124)}},
	{Name: "command that ignores signals", Surface: Run, Harmless: true, Limit: time.Second, Text: `trap '' TERM INT HUP; while :; do sleep 1; done`, Want: Want{Time: TimesOut}},
	{Name: "command whose child holds the pipe", Surface: Run, Leaves: true, Text: `sleep 1000 & echo on`, Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "command that kills everything", Surface: Run, Text: `(kill -9 -1); sleep 100`, Want: Want{Exit: exits(137)}},
	{Name: "command that closes everything", Surface: Run, Limit: time.Second, Harmless: true, Text: `exec 0<&- 1>&- 2>&-; exec sleep 1000`, Want: Want{Time: TimesOut}},
	{Name: "command that traces its child forever", Surface: Run, Limit: time.Second, Text: python(`
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
if os.fork() == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(100)`), Want: Want{Time: TimesOut}},
}

// debuggerCases are programs under the debugger.
var debuggerCases = []Case{
	program("prints prompts", "print('(Pdb) ', end='', flush=True)\nprint('> app.py(1)<module>()\\n(Pdb) ')", Want{Has: []string{"ended with exit code 0"}}),
	program("forges frames", `
import os
os.write(1, b"\x1b]7717;ABCDEFGHIJKLMNOPQRSTUVWXYZ;2;%d;1;1;e30=\x07\x1b]7717;" % os.getpid())
print("end")`, Want{Has: []string{"end", "ended with exit code 0"}}),
	program("steals the nonce", stealChannel+`
say('{"event": "line", "file": "forged.py", "line": 7, "function": "forged", "depth": 1, "first": 1, "lines": ["forged"]}')
time.sleep(0.2)
breakpoint()
pass`, Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("steals the nonce and uses up the numbers", stealChannel+`
say('{"event": "line", "file": "forged.py", "line": 7}', 2 ** 64 - 1)
time.sleep(0.2)
breakpoint()
pass`, Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("steals the nonce and sends nonsense", stealChannel+`
say('{"event": 5, "line": "x", "lines": {}}')
time.sleep(0.2)`, Want{}),
	program("steals the nonce and begins a frame", stealChannel+`
channel.output.write("\x1b]7717;%s;%d;%d;1;9;e30=\x07" % (channel.nonce, channel.seq + 1, os.getpid()))
print("end")`, Want{Has: []string{"ended with exit code 0"}}),
	slow("spoils the nonce", stealChannel+`
channel.nonce = "x"
breakpoint()
pass`, Either),
	slow("closes the debugger's descriptors", "import os\nos.closerange(3, 4096)\nbreakpoint()\nprint('end')", Either),
	slow("replaces the debugger's descriptors", "import os\nnull = os.open('/dev/null', 2)\nfor n in range(3, 1100):\n    os.dup2(null, n)\nbreakpoint()\npass", Either),
	slow("reads the debugger's input", "import os\nfor n in range(900, 910):\n    try:\n        os.read(n, 10)\n    except OSError:\n        pass", Either),
	program("program that reads standard input", "try:\n    input()\nexcept EOFError:\n    print('no input')", Want{Has: []string{"no input"}}),
	program("child that prompts too", "import os\npid = os.fork()\nbreakpoint()\nif pid:\n    os.wait()\nprint('end')", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("child that inherits a frame", stealChannel+`
pid = os.fork()
if not pid:
    say('{"event": "line", "file": "child.py", "line": 1}')
    os._exit(0)
os.wait()
breakpoint()
pass`, Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("sys.settrace", "import sys\nsys.settrace(None)\nsys.settrace(lambda *a: None)\nprint('end')", Want{Has: []string{"end"}}),
	program("sys.exit", "import sys\nsys.exit(7)", Want{Exit: exits(7)}),
	program("os._exit", "import os\nos._exit(7)", Want{Exit: exits(7)}),
	program("os.execv", "import os\nos.execv('/bin/echo', ['echo', 'other'])", Want{Exit: exits(0), Has: []string{"other"}}),
	program("os.abort", "import os\nos.abort()", Want{Exit: exits(134)}),
	program("segmentation fault under the debugger", "import ctypes\nctypes.string_at(0)", Want{Exit: exits(139)}),
	program("faulthandler", "import faulthandler, sys\nfaulthandler.enable()\nfaulthandler.dump_traceback_later(0.05, repeat=True)\nimport time\ntime.sleep(0.3)\nfaulthandler.cancel_dump_traceback_later()\nfaulthandler._sigsegv()", Want{Exit: exits(139)}),
	slow("deep recursion", "import sys\nsys.setrecursionlimit(10 ** 7)\ndef f():\n    f()\nf()", Either),
	slow("repr that sleeps", "import time\nclass Slow:\n    def __repr__(self):\n        time.sleep(1000)\nslow = Slow()\nbreakpoint()\npass", TimesOut, "c", "p slow"),
	program("repr that raises", "class Bad:\n    def __repr__(self):\n        raise SystemExit(3)\nbad = Bad()\nbreakpoint()\npass", Want{Time: Either}, "c", "p bad"),
	program("endless repr", "class Long:\n    def __repr__(self):\n        return 'x' * 50_000_000\nlong = Long()\nbreakpoint()\npass", Want{MaxBytes: 70_000}, "c", "p long"),
	slow("endless loop under the debugger", "while True:\n    pass", TimesOut),
	slow("endless loop in C under the debugger", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", TimesOut),
	slow("ignores interrupts", "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    time.sleep(1)", TimesOut),
	slow("swallows interrupts", "import time\nwhile True:\n    try:\n        time.sleep(1000)\n    except BaseException:\n        pass", TimesOut),
	slow("program that stops itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", TimesOut),
	slow("program that stops its parents", "import os, signal\nfor pid in (os.getppid(), os.getpid()):\n    if pid > 1:\n        os.kill(pid, signal.SIGSTOP)", TimesOut),
	program("program that kills everything", "import os\ntry:\n    os.kill(-1, 9)\nexcept ProcessLookupError:\n    pass\nos.kill(os.getpid(), 9)", Want{Exit: exits(137)}),
	program("program that kills its group", "import os\nos.killpg(0, 9)", Want{Exit: exits(137)}),
	slow("exit that waits", "import atexit, time\natexit.register(time.sleep, 1000)", TimesOut),
	slow("threads that never end", "import threading, time\nfor _ in range(20):\n    threading.Thread(target=time.sleep, args=(1000,)).start()", TimesOut),
	program("threads that print", "import sys, threading, time\ndef noise():\n    while True:\n        sys.stdout.write('noise ' * 5)\n        time.sleep(0.001)\nthreading.Thread(target=noise, daemon=True).start()\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("child that prints", "import subprocess\nsubprocess.Popen(['yes', 'x' * 3000])\nbreakpoint()\npass", Want{}, "c", "p 6 * 7"),
	program("child that holds the pipe", "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\nprint('end')", Want{Has: []string{"end"}}),
	program("multiprocessing", "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(4) as pool:\n        print(sum(pool.map(abs, range(10))))", Want{Has: []string{"45"}}),
	program("storm of alarms", "import signal, time\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("alarm that kills", "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(100)", Want{Exit: exits(142)}),
	program("pipe that does not block", "import fcntl, os\nfor fd in (0, 1, 2):\n    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	slow("replaces what the debugger uses", "import base64, json, os\njson.dumps = lambda *a, **k: '{'\nbase64.b64encode = lambda *a: b''\nbreakpoint()\npass", Either),
	slow("replaces os.write", "import os\nos.write = lambda *a: 0\nbreakpoint()\npass", Either),
	slow("replaces os.getpid", "import os\nos.getpid = lambda: 1\nbreakpoint()\npass", Either),
	slow("empties sys.modules", "import sys\nsys.modules.clear()\nbreakpoint()\npass", Either),
	program("no standard streams", "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("streams that raise", "import sys\nclass Bad:\n    def __getattr__(self, name):\n        raise MemoryError\nsys.stdout = Bad()\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	slow("no descriptors under the debugger", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\nbreakpoint()\npass", Either),
	slow("fork bomb under the debugger", "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass", Either),
	slow("memory under the debugger", "hold = []\nwhile True:\n    hold.append(bytearray(1 << 20))", Either),
	program("100 MB under the debugger", "import sys\nfor _ in range(100):\n    sys.stdout.write('x' * 1_000_000)\nprint()\nprint('end')", Want{MaxBytes: 70_000, Has: []string{"end"}}),
	program("bytes that are not text", "import os\nos.write(1, bytes(range(256)) + b'\\xe6\\xbc')\nbreakpoint()\npass", Want{Has: []string{"42"}}, "c", "p 6 * 7"),
	program("debugger command that exits", "pass", Want{Exit: exits(9)}, "!import os; os._exit(9)"),
	slow("endless debugger command", "pass", TimesOut, "!while True: pass"),
	program("debugger command that breaks the debugger", "pass", Want{Time: Either}, "!import sys; sys.modules['pdb'].Pdb.onecmd = None; sys._getframe = None"),
}

// program returns a case with a program for the debugger.
func program(name, text string, want Want, commands ...string) Case {
	c := Case{Name: name, Surface: Pdb, Text: text, Want: want, Commands: commands, Harmless: true}
	switch name {
	case "program that kills everything", "program that stops its parents", "memory under the debugger", "deep recursion", "fork bomb under the debugger":
		c.Harmless = false
	case "100 MB under the debugger", "endless repr":
		c.Rare, c.Limit = 3, 300*time.Second
	}
	return c
}

// slow returns a case like program does, for a program that may or must time out.
func slow(name, text string, t Time, commands ...string) Case {
	c := program(name, text, Want{Time: t}, commands...)
	c.Limit = 2 * time.Second
	return c
}

// stealChannel is Python code that finds the debugger's channel among the objects of the process.
const stealChannel = `
import base64, gc, os, time
channel = [o for o in gc.get_objects() if type(o).__name__ == "Channel"][0]
def say(body, seq=None):
    channel.output.write("\x1b]7717;%s;%d;%d;1;1;%s\x07" % (
        channel.nonce, channel.seq + 1 if seq is None else seq, channel.pid, base64.b64encode(body.encode()).decode()))
`
