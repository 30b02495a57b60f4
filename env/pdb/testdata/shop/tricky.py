import os
import sys
import threading
import time


def crash():
    numbers = {"zero": 0}
    return 1 / numbers["zero"]


def ask():
    try:
        answer = input("name? ")
    except EOFError:
        answer = "nobody"
    print("hello", answer)


def tty():
    try:
        open("/dev/tty").readline()
    except OSError:
        print("no terminal")


def mimic():
    print("(Pdb) ")
    sys.stdout.write("\x1b]7717;WRONGNONCE;9;1;e30=\x07")
    print("(Pdb) é漢" * 3)
    after = 1
    return after


def loop():
    count = 0
    while True:
        count += 1


def sleep():
    print("going to sleep")
    time.sleep(1000)


def hard_exit():
    print("last words")
    os._exit(7)


def soft_exit():
    sys.exit(3)


def recurse(n=0):
    return recurse(n + 1)


class Bad:
    def __repr__(self):
        raise ValueError("no repr")


def bad():
    value = Bad()
    number = 1
    return value, number


def work(found):
    found.append(threading.current_thread().name)


def threads():
    found = []
    pool = [threading.Thread(target=work, args=(found,)) for _ in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    print("threads", len(found))


def forked():
    print("in child", flush=True)


def fork():
    pid = os.fork()
    if pid == 0:
        forked()
        os._exit(0)
    os.waitpid(pid, 0)
    forked_done = True
    print("parent goes on", forked_done)


def flood():
    for i in range(200000):
        print("line", i)


def stubborn():
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pass


def own_breakpoint():
    x = 41
    import pdb; pdb.set_trace()
    x += 1
    print("x", x)


def numbers():
    for n in range(10):
        square = n * n
    return square


def lingering():
    threading.Thread(target=time.sleep, args=(1000,)).start()
    print("main is done")


def daemon():
    # A grandchild that keeps the output open and ignores everything.
    os.system("(trap '' INT TERM HUP; exec setsid sleep 1000) &")


def slow_repr():
    class Slow:
        def __repr__(self):
            time.sleep(1000)
    value = Slow()
    return value


def hostile():
    os.closerange(3, 200)
    for fd in map(int, os.listdir("/proc/self/fd")):
        os.path.exists("/proc/self/fd/%d" % fd) and os.set_blocking(fd, False)
    sys.settrace(None)
    sys.stdout.close()
    os.close(1)
    os.close(2)
    import breakpoint_module_that_is_missing


if __name__ == "__main__":
    globals()[sys.argv[1]]()
