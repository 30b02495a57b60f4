"""Programs with unusual behavior, one per function."""
import os
import sys
import threading


def deletes_itself():
    os.remove(__file__)
    x = 1
    return x


def loses_its_folder():
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    x = 1
    return x


def stops_tracing():
    sys.settrace(None)
    seen_by_nobody()


def traces_itself():
    sys.settrace(lambda *a: None)
    seen_by_nobody()


def seen_by_nobody():
    inside = 5
    print("inside", inside)


def without_streams():
    sys.stdout = sys.stderr = None
    x = 1
    return 1 / (x - x)


def replaces_builtins():
    import builtins
    builtins.print = builtins.input = builtins.open = builtins.repr = builtins.eval = builtins.exec = None
    x = 1
    return x


def replaces_more_builtins():
    import builtins
    builtins.open = builtins.print = builtins.input = builtins.len = builtins.isinstance = builtins.sorted = None
    builtins.getattr = builtins.hasattr = builtins.max = builtins.any = builtins.compile = builtins.iter = None
    builtins.range = builtins.str = builtins.list = builtins.type = builtins.enumerate = None
    x = 1
    return x


def closes_descriptors():
    os.closerange(0, 4096)
    x = 1
    return x


def runs_code():
    exec("a = 1\nb = 2\n", {})
    exec(compile("c = 1\nraise KeyError(c)", "made/up.py", "exec"), {})


def broken_hook():
    def hook(*_):
        raise SystemError("hook is broken")
    sys.excepthook = hook
    {}["missing"]


def quiet_hook():
    sys.excepthook = lambda *_: None
    {}["missing"]


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")
    __repr__ = __str__


def unspeakable():
    raise Unspeakable()


class Leaves:
    def __del__(self):
        raise ValueError("on leaving")


def bad_farewell():
    d = Leaves()
    del d
    print("left")


class Counted:
    alive = 0

    def __init__(self):
        Counted.alive += 1

    def greet(self):
        return "hello"

    def __del__(self):
        Counted.alive -= 1


above = 1


def hides_names(n=4):
    """Nested scopes in commands see its local names."""
    def inner(k):
        """A docstring, which compiles to no code."""
        nonlocal n
        other: int
        n += k
        return n
    values = [inner(k) for k in range(3)]
    local = 2
    print(above, values)
    return local


def keeps_nothing():
    c = Counted()
    c.greet()
    del c
    print("alive", Counted.alive)


def bad_exit_handler():
    import atexit
    atexit.register(lambda: 1 / 0)
    print("bye")


def hanging_exit_handler():
    import atexit
    import time
    atexit.register(time.sleep, 1000)
    print("bye")


def alarms():
    import signal
    got = []
    signal.signal(signal.SIGALRM, lambda *a: got.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while len(got) < 20:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("alarms", len(got) >= 20)


def own_interrupts():
    import signal
    signal.signal(signal.SIGINT, lambda *_: None)
    x = 1
    while x:
        pass


def collects():
    import gc
    gc.set_debug(gc.DEBUG_STATS)
    gc.collect()
    gc.set_debug(0)
    print("collected")


def thread_exits():
    t = threading.Thread(target=sys.exit, args=(4,))
    t.start()
    t.join()
    print("still here")


def base_exception():
    class Base(BaseException):
        pass
    raise Base("base")


def reads():
    print([sys.stdin.read(), sys.stdin.readline(), list(sys.stdin), os.read(0, 10)])


def asks():
    import cmd, code, fileinput, getpass, select
    print(select.select([sys.stdin], [], [], 60)[0] == [sys.stdin], list(fileinput.input(files=["-"])))
    code.interact("console", local={})
    help()
    cmd.Cmd.do_EOF = lambda *_: print("end of commands") or True
    cmd.Cmd().cmdloop()
    for ask in input, getpass.getpass, lambda: open("/dev/tty").readline():
        try:
            print("got", ask())
        except (EOFError, OSError) as e:
            print("no answer:", type(e).__name__)


def very_deep(n=20000):
    sys.setrecursionlimit(100000)
    threading.stack_size(256 << 20)
    t = threading.Thread(target=deeper, args=(n,))
    t.start()
    t.join()


def deeper(n):
    return deeper(n - 1) if n else print("bottom")


async def one(n):
    import asyncio
    await asyncio.sleep(0.001)
    z = n + 1
    return z


async def several():
    import asyncio
    print("sum", sum(await asyncio.gather(one(1), one(2))))


def coroutines():
    import asyncio
    asyncio.new_event_loop().run_until_complete(several())


def counts(n):
    for i in range(n):
        yield i


def generators():
    print("total", sum(counts(3)))


def chained():
    try:
        {}["key"]
    except KeyError as e:
        raise RuntimeError("outer") from e


def at_work(n):
    m = n * 2
    return m


def workers():
    pool = [threading.Thread(target=at_work, args=(n,), name="worker-%d" % n) for n in range(3)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    print("all joined")


def lasting_worker():
    go, done = threading.Event(), threading.Event()
    t = threading.Thread(target=waits, args=(go, done))
    t.start()
    x = 1
    go.set()
    done.wait()
    print("worker is done", x)


def waits(go, done):
    go.wait()
    after = 1
    done.set()
    return after


def unjoined():
    threading.Thread(target=later).start()


def later():
    import time
    time.sleep(0.05)
    at_work(4)


def processes():
    import multiprocessing
    for method in "fork", "spawn":
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(at_work, [1, 2]))


def subprocesses():
    import subprocess
    code = "import sys; print(repr(sys.stdin.read()))"
    print(subprocess.check_output([sys.executable, "-c", code]))
    print(subprocess.call([sys.executable, __file__, "generators"]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
