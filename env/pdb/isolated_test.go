package pdb

import (
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// The debugger works in a bubblewrap sandbox, where paths are the same in every run.
func TestDebuggerInBubblewrap(t *testing.T) {
	b := openIn(t, "bubblewrap", "", Config{Entrypoint: "python3 -m pytest -q -p no:cacheprovider tests"})
	b.do("b pkg/prices.py:19")
	b.at(b.do("c"), "pkg/prices.py", 19)
	b.has(b.do("w"), "> pkg/prices.py(19)total()")
	b.has(b.do("!import os; print(sorted(os.listdir('.')))"), "['Makefile', 'broken.py', 'main.py', 'odd.py', 'pkg', ")
	b.do("cl")
	r := b.do("c")
	b.has(r, "1 failed, 1 passed", "tests/test_prices.py:9: AssertionError", "exit code 1")
	b.hasNot(r, "\x1b")
	r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "c", Entrypoint: "python3 tricky.py crash"})
	if err != nil {
		t.Fatal(err)
	}
	b.has(r, `File "/testbed/tricky.py", line 9, in crash`, "Current frame: tricky.py:9 in crash (post-mortem")
	if _, err = b.Command(t.Context(), env.DebuggerCommand{Text: "n", Entrypoint: "python3 tricky.py sleep"}); err != nil {
		t.Fatal(err)
	}
	b.has(b.withLongGrace().doWithin("c", shortTimeout), "interrupted at tricky.py:43")
}

func BenchmarkPrint(b *testing.B) {
	for _, kind := range []string{"local", "bubblewrap"} {
		b.Run(kind, func(b *testing.B) {
			d := openIn(b, kind, "", Config{Entrypoint: "python3 main.py"})
			if _, err := d.Command(b.Context(), env.DebuggerCommand{Text: "n"}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if r, err := d.Command(b.Context(), env.DebuggerCommand{Text: "p 1"}); err != nil || r.IsError {
					b.Fatal(r, err)
				}
			}
		})
	}
}
