package pdb

import (
	"fmt"
	"strings"
	"testing"
)

// Each line counts as often as a trace function would see it, also lines that contain a whole loop or function.
func TestEachPythonHitsOfEachLine(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" lines.py")
		b.write("lines.py", linesProgram)
		b.write("count.py", countingProgram)
		r, err := b.sb.Run(t.Context(), envCommand(py, "count.py"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]int{}
		for _, word := range strings.Fields(string(r.Output)) {
			var line, count int
			if _, err := fmt.Sscanf(word, "%d:%d", &line, &count); err != nil {
				t.Fatalf("%v in %s", err, r.Output)
			}
			want[line] = count
		}
		last := strings.Count(linesProgram, "\n")
		for line := range want {
			if line != 1 && line != last { // the program is paused at the first line
				b.do(fmt.Sprintf("b %d, 0", line))
			}
		}
		b.at(b.do(fmt.Sprintf("b %d ;; c", last)), "lines.py", last)
		for _, p := range b.Breakpoints() {
			if p.Hits != want[p.Line] {
				t.Errorf("%d hits of line %d, want %d: %s", p.Hits, p.Line, want[p.Line], strings.Split(linesProgram, "\n")[p.Line-1])
			}
		}
		if len(b.Breakpoints()) < 60 {
			t.Errorf("only %d lines were tested", len(b.Breakpoints()))
		}
	})
}

const countingProgram = `import sys
counts = {}
def trace(frame, event, arg):
    if frame.f_code.co_filename != "lines.py":
        return None
    if event == "line":
        counts[frame.f_lineno] = counts.get(frame.f_lineno, 0) + 1
    return trace
code = compile(open("lines.py").read(), "lines.py", "exec")
sys.settrace(trace)
exec(code, {"__name__": "__main__"})
sys.settrace(None)
print(*["%d:%d" % pair for pair in sorted(counts.items())])
`

const linesProgram = `import asyncio
def count_down(n):
    while n: n -= 1
    return n
def squares(n): return [x * x for x in range(n)]
def loops(n):
    for i in range(n): pass
    return sum(i for i in range(n))
def branches(n):
    for i in range(n):
        if i == 1:
            continue
        n += 0
    else:
        n = 2
    return n
def same(n): return n
plus = lambda n: n + 1
longer = lambda n: (n +
    1)
def counts(n):
    try:
        for i in range(n): yield i
    finally:
        n = 0
def nested(n):
    yield from counts(n)
    return 1
def calls(n):
    return (
        n +
        same(n)
        + plus(n)
    )
def comprehensions(n):
    x = [same(y) for y in range(n)]
    return {z: z
            for z in x
            if z}
def breaks(n):
    while True:
        n -= 1
        if n < 0: break
def returns(n):
    while True:
        n -= 1; same(n)
        if n < 0:
            return
def raises(n):
    while True: n -= 1 if n > 0 else fails(n)
def fails(n): raise KeyError
def handles(n):
    try:
        raises(n)
    except KeyError: n = 1
    with open("/dev/null") as f: pass
    for i in range(3):
        try:
            if i: continue
        finally:
            n += 1
async def waits(n):
    await asyncio.sleep(0)
    async for i in produces(n): n += i
    async with Held(): n += 1
    return [i async for i in produces(3)]
async def produces(n):
    for i in range(n): yield i
class Held:
    async def __aenter__(self): return 1
    async def __aexit__(self, *a): return None
def depth(n): return depth(n - 1) if n else 0
def decorator(f): return f
@decorator
@decorator
def decorated(
        n=1):
    return n
count_down(3); squares(3); loops(3); branches(3); same(3); plus(3); longer(3); decorated()
list(counts(3)); list(nested(2)); calls(3); comprehensions(3); breaks(2); returns(2); handles(2); depth(3)
x = counts(3); next(x); x.close()
x = nested(3); next(x)
try:
    x.throw(KeyError)
except KeyError:
    pass
asyncio.new_event_loop().run_until_complete(waits(2))
for i in range(2): same(i)
[same(i)
 for i in range(2)]
if count_down(1) or squares(1) and \
   loops(1):
    pass
y = (1,
     same(2),
     3)
assert y, same(1)
while same(0): pass
del y
`

// Breakpoints that are set while the program is stopped work in functions that run, wait or have run already.
func TestEachPythonBreakpointsSetLate(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" late.py")
		b.write("late.py", lateProgram)
		b.at(b.do("b "+b.line("late.py", "ready = 1")+" ;; c"), "late.py", 38)
		// A function that has run, a suspended generator, a coroutine and a loop of the same frame.
		b.do("b " + b.line("late.py", "m += 1") + " ;; b " + b.line("late.py", "n += 1") + " ;; b " + b.line("late.py", "c += 1") + " ;; b " + b.line("late.py", "again = i"))
		for i := range 2 {
			b.has(b.do("c ;; p m"), "Breakpoint 2 hit.", fmt.Sprint(10+i, "\n"))
			b.has(b.do("c ;; p n"), "Breakpoint 3 hit.", fmt.Sprint(20+i, "\n"))
			b.has(b.do("c ;; p i, c"), "Breakpoint 4 hit.", fmt.Sprintf("(%d, 4)\n", i))
			b.has(b.do("c ;; p i"), "Breakpoint 5 hit.", fmt.Sprint(i, "\n"))
		}
		b.do("cl 2 ;; cl 3 ;; cl 4 ;; disable 5")
		b.do("tbreak " + b.line("late.py", "last = i"))
		b.has(b.do("c ;; p i"), "Breakpoint 6 hit (temporary: now removed).", "2\n")
		b.do("enable 5")
		b.has(b.do("c ;; p i"), "Breakpoint 5 hit.", "2\n")
		b.has(b.do("cl ;; c"), "late 4", "exit code 0")
	})
}

const lateProgram = `import asyncio
def before(m):
    m += 1
    return m
def generate():
    n = 19
    while True:
        n += 1
        yield n
async def wait(i):
    c = 4
    if i >= 0:
        c += 1
        c -= 1
    await asyncio.sleep(0)
    return c
async def main():
    for i in range(-1, 5):
        await wait(i)
        last = i
        yield i
def drive(loop):
    steps = main()
    while True:
        try:
            loop.run_until_complete(steps.__anext__())
        except StopAsyncIteration:
            return
        yield 1
loop = asyncio.new_event_loop()
before(1)
generated = generate()
next(generated)
driven = drive(loop)
next(driven)
for i in range(-1, 5):
    if i < 0:
        ready = 1
        continue
    before(10 + i)
    next(generated)
    next(driven)
    again = i
print("late", i)
`

// A step, a breakpoint and their lines stop the program once each, however the commands alternate.
func TestEachPythonStepsAndBreakpointsAlternate(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" alternate.py")
		b.write("alternate.py", alternateProgram)
		b.has(b.do("b 3 ;; b 4 ;; b 14, i == 3 ;; c ;; p n"), "Breakpoint 1 hit.", "2\n")
		b.at(b.do("n"), "alternate.py", 4) // stepping onto a breakpoint does not count as a hit
		b.has(b.do("c ;; p n"), "Breakpoint 1 hit.", "1\n")
		b.at(b.do("c"), "alternate.py", 4)
		b.has(b.do("n ;; p n"), "Breakpoint 1 hit.", "0\n") // while the step over the call is in progress
		b.has(b.do("cl 1 ;; cl 2 ;; r"), "alternate.py(5)recurse()->0")
		b.has(b.do("s ;; s ;; s ;; n"), "alternate.py(5)recurse()->1", "alternate.py(5)recurse()->2")
		b.has(b.do("n ;; n ;; p i ;; c ;; p i"), "\n1\n", "Breakpoint 3 hit.", "\n3\n")

		// Assignments and jumps work at a breakpoint, and so does a step out of the main module.
		b.do("cl ;; b 12 ;; restart ;; c")
		b.has(b.do("!local = 5 ;; c"), "local 5\n")
		b.do("cl ;; b 10 ;; restart ;; c")
		b.at(b.do("jump 12"), "alternate.py", 12)
		b.has(b.do("p local ;; c"), "1\n", "local 1\n", "exit code 0")
		b.has(b.do("cl ;; b 16 ;; c ;; r"), "--Return--", "alternate.py(16)<module>()")
		b.has(b.do("c"), "exit code 0")
	})
}

const alternateProgram = `import sys
def recurse(n):
    if n:
        recurse(n - 1)
    return n
def assigns():
    local = 1
    if local:
        for _ in range(1):
            x = 2
            local += x
        print("local", local)
for i in range(4):
    recurse(2)
assigns()
done = True
`

// A program may use trace functions, sys.monitoring and exception hooks, and look for a debugger.
func TestEachPythonProgramsThatObserveThemselves(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" observes.py")
		b.write("observes.py", observingProgram)
		b.do("b work ;; b hook")
		b.has(b.do("c ;; p n"), "tracer bdb\n", "Breakpoint 1 hit.", "0\n")
		b.has(b.do("c ;; p n"), "Breakpoint 1 hit.", "1\n") // tracing was switched off
		b.has(b.do("n ;; n"), "--Return--")
		r := b.do("c ;; p n")
		b.has(r, "Breakpoint 1 hit.", "3\n") // not in the trace function of the program itself
		b.has(r, "own tracer ['work:call', 'work:line', 'work:line', 'work:return']\n")
		b.has(b.do("p work(7) ;; c ;; p n"), "14\n", "Breakpoint 1 hit.", "4\n")
		b.has(b.do("c"), "lines [2, 3]\n", "hook 10", "KeyError", "post-mortem")
		b.has(b.do("p work(8)"), "16\n")
		b.has(b.do("c"), "observes.py:15 called sys.settrace: the debugger could not trace the program from then on", "exit code 1")
	})
}

const observingProgram = `def work(n):
    m = n * 2
    return m
import sys
def hook(*error):
    print("hook", work(5))
    sys.__excepthook__(*error)
seen = []
def trace(frame, event, arg):
    seen.append("%s:%s" % (frame.f_code.co_name, event))
    return trace
old = sys.gettrace()
print("tracer", old.__module__)
work(0)
sys.settrace(None); work(1); sys.settrace(trace)
work(2)
sys.settrace(None)
print("own tracer", [event for event in seen if event.startswith("work:")])
sys.settrace(old)
work(3)
found = []
def on_line(code, line):
    if code is work.__code__:
        found.append(line)
        return sys.monitoring.DISABLE if line == 2 else None
if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(sys.monitoring.DEBUGGER_ID, "own")
    sys.monitoring.register_callback(sys.monitoring.DEBUGGER_ID, sys.monitoring.events.LINE, on_line)
    sys.monitoring.set_events(sys.monitoring.DEBUGGER_ID, sys.monitoring.events.LINE)
    work(4)
    sys.monitoring.free_tool_id(sys.monitoring.DEBUGGER_ID)
else:
    work(4)
    found = [2, 3]
print("lines", found)
sys.excepthook = hook
raise KeyError
`

// Between stops, functions without a breakpoint are not traced, and with sys.monitoring no function is.
func TestEachPythonTracesNothingBetweenStops(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" traced.py")
		b.write("traced.py", tracedProgram)
		b.do("b steps ;; b 10, x ;; b 15 ;; c ;; n ;; s ;; r")
		b.at(b.do("c"), "traced.py", 15)
		if r := b.do("p traced"); !strings.HasPrefix(r.Text, "[]\n") {
			t.Errorf("trace functions: %s", r.Text)
		}
	})
}

const tracedProgram = `import sys
def steps():
    x = same(1)
    return x
def same(x):
    return x
def plain():
    return sys._getframe().f_trace
def with_breakpoint(x):
    if x: x = same(x)
    return sys._getframe().f_trace if hasattr(sys, "monitoring") else None
traced = []
steps()
traced = [f for f in [plain(), with_breakpoint(0)] if f]
print("done")
`
