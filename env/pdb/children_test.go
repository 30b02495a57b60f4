package pdb

import "testing"

func TestEachPythonChildProcessesNeverStop(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" odd.py processes")
		b.do("b at_work")
		r := b.do("c")
		b.has(r, "(Breakpoint 1 was reached at odd.py:", "in a child process, which cannot be stopped.)",
			"fork [2, 4]", "spawn [2, 4]", "exit code 0")
		b.has(b.do("n"), "Current frame: odd.py:2 in <module>")
	})
}

// The output of child processes is part of the program's output, and their end does not end the program.
func TestEachPythonChildrenOfEveryKind(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" kids.py")
		b.write("kids.py", kids)
		for name, want := range map[string][]string{
			"fork_ends":   {"child", "status 0\n"},
			"fork_raises": {"in fork_raises\n", "KeyError: 'in child'\n", "status 1\n"},
			"fork_exits":  {"status 3\n"},
			"fork_breaks": {"(breakpoint() was reached at kids.py:", "child goes on\n", "parent\n"},
			"in_thread":   {"child", "status 0\n", "joined\n"},
			"forkserver":  {"ValueError: 3\n", "forkserver 1\n", "its line did not run in this process.\nThe program started other"},
			"executors":   {"[1, 4]\n", " was reached at kids.py:3 in a child process, which cannot be stopped.)"},
			"readers":     {"''\n", "EOFError", "interactive\n", "got .\n", "piped\n", "None None\n"},
			"becomes":     {"became\n"},
			"left_alone":  {"left\n", "The program started other processes"},
		} {
			if py[len(py)-4:] == "3.14" && name == "executors" {
				want = want[:1] // its children are forked by a server
			}
			b.do("cl")
			r := b.doUnder(py+" kids.py "+name, "b kids.py:3 ;; c")
			b.has(r, append(want, "exit code 0")...)
			b.hasNot(r, "pdb shim", "bdb.py", "(Pdb)")
		}
		b.has(b.do("n ;; p 6 * 7"), "42\nCurrent frame: kids.py:2")
	})
}

const kids = `import multiprocessing, os, subprocess, sys, threading
def work(n):
    y = n * n
    return y
def bad(n):
    raise ValueError(n)
def fork(then):
    pid = os.fork()
    if pid == 0:
        return then()
    status = os.waitpid(pid, 0)[1]
    print("status", status >> 8)
def fork_ends():
    fork(lambda: print("child", flush=True))
def fork_raises():
    pid = os.fork()
    if pid == 0:
        raise KeyError("in child")
    print("status", os.waitpid(pid, 0)[1] >> 8)
def fork_exits():
    fork(lambda: sys.exit(3))
def fork_breaks():
    pid = os.fork()
    if pid == 0:
        import pdb; pdb.set_trace()
        print("child goes on", flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    print("parent")
def in_thread():
    t = threading.Thread(target=fork_ends)
    t.start()
    t.join()
    print("joined")
def forkserver():
    p = multiprocessing.get_context("forkserver").Process(target=bad, args=(3,))
    p.start()
    p.join()
    print("forkserver", p.exitcode)
def executors():
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as executor:
        print(list(executor.map(work, [1, 2])))
def readers():
    subprocess.call([sys.executable, "-c", "import sys; print(repr(sys.stdin.read())); sys.stdout.flush(); input()"])
    subprocess.call([sys.executable, "-i", "-c", "print('interactive')"], stderr=subprocess.DEVNULL)
    os.system("read x; echo got $x.")
    p = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    print(*p.communicate(b"piped\n"))
def becomes():
    os.execv(sys.executable, [sys.executable, "-c", "print('became')"])
def left_alone():
    subprocess.Popen(["sleep", "0.01"])
    print("left")
if __name__ == "__main__":
    globals()[sys.argv[1]]()
`
