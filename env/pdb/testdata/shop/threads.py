"""Programs with several threads, one per function."""
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor


def job(n):
    m = n * 2
    m += 1
    return m


def pool():
    with ThreadPoolExecutor(3) as executor:
        found = list(executor.map(job, range(6)))
    print("pool", found)


def consume(todo, done):
    while True:
        n = todo.get()
        if n is None:
            return
        done.put(job(n))


def queues():
    todo, done = queue.Queue(2), queue.Queue()
    crew = [threading.Thread(target=consume, args=(todo, done), name="crew-%d" % i) for i in range(3)]
    for t in crew:
        t.start()
    for n in range(6):
        todo.put(n)
    for t in crew:
        todo.put(None)
    for t in crew:
        t.join()
    print("queues", sorted(done.get() for _ in range(6)))


def job_after_job():
    crew = [threading.Thread(target=lambda: [job(n) for n in range(5)]) for _ in range(4)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    print("after", 20)


def waits_for(others):
    for t in others:
        t.join()
    waited = True
    return waited


def step_over_a_wait():
    t = threading.Thread(target=job, args=(1,), name="other")
    t.start()
    waits_for([t])
    after = 1
    print("waited", after)


def spin(stop):
    count = 0
    while not stop:
        count += 1


def daemons():
    for _ in range(3):
        threading.Thread(target=spin, args=([],), daemon=True).start()
    result = job(5)
    print("daemons", result)


def daemon_at_a_prompt():
    t = threading.Thread(target=job, args=(7,), daemon=True, name="left")
    t.start()
    print("main is done")


def jobs_around(end):
    job(1)
    end.set()
    while threading.main_thread().is_alive():
        pass
    job(2)


def outlives_main():
    end = threading.Event()
    threading.Thread(target=jobs_around, args=(end,), name="last").start()
    end.wait()
    print("main has ended")


def guarded(lock, n):
    with lock:
        job(n)


def locks():
    lock = threading.Lock()
    crew = [threading.Thread(target=guarded, args=(lock, n)) for n in range(4)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    print("locks", lock.acquire(False))


def fails(n):
    raise KeyError(n)


def exits(n):
    raise SystemExit(n)


def deaths():
    for target in fails, exits:
        t = threading.Thread(target=target, args=(3,), name="dying")
        t.start()
        t.join()
    print("main lives")


def timers():
    threading.Timer(0.01, job, [8]).start()
    print("timers")


def own_calls():
    def stops(n):
        import pdb
        pdb.set_trace()
        return n
    crew = [threading.Thread(target=stops, args=(n,)) for n in range(3)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    print("own calls")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
