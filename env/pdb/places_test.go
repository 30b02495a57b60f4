package pdb

import (
	"strings"
	"testing"
)

// executable writes an executable file to the workspace.
func (b *testDebugger) executable(name, text string) {
	b.t.Helper()
	b.write(name, text)
	if r, err := b.sb.Run(b.t.Context(), envCommand("chmod", "+x", name)); err != nil || r.ExitCode != 0 {
		b.t.Fatal(r, err)
	}
}

// Replacements for programs that the test machine may lack. They start the command in their
// arguments in the same way as the real programs.
const (
	// conda run writes the command to a script. Without --no-capture-output, it buffers the output and
	// closes the input.
	conda = `#!/usr/bin/python3
import shlex, subprocess, sys, tempfile
args = sys.argv[2:]
assert sys.argv[1] == "run"
capture, i = True, 0
while args[i].startswith("-"):
    if args[i] in ("--no-capture-output", "--live-stream"):
        capture = False
    i += 2 if args[i] in ("-n", "-p") else 1
script = tempfile.NamedTemporaryFile("w", suffix=".sh")
script.write("export CONDA_DEFAULT_ENV=%s\n. /dev/null\n%s\n" % (args[i - 1], shlex.quote(args[i]) + " " + " ".join(map(shlex.quote, args[i + 1:]))))
script.flush()
pipe = subprocess.PIPE if capture else None
p = subprocess.Popen(["bash", script.name], stdin=pipe, stdout=pipe, stderr=pipe)
out, _ = p.communicate()
sys.stdout.write((out or b"").decode())
sys.exit(p.returncode)
`
	xvfbRun = `#!/bin/sh
while :; do case $1 in -s|-n|-e|-f|-p|-w) shift 2 ;; -*) shift ;; *) break ;; esac; done
DISPLAY=:99 "$@"
`
	uv = `#!/bin/sh
[ "$1" = run ] && shift
while :; do case $1 in --with|-p|--python) shift 2 ;; -*) shift ;; *) break ;; esac; done
PATH=$PWD/venv/bin:$PATH VIRTUAL_ENV=$PWD/venv exec "$@"
`
)

func TestEntrypointsOfManyKinds(t *testing.T) {
	b := open(t, "python3 main.py")
	b.executable("bin/conda", conda)
	b.executable("bin/xvfb-run", xvfbRun)
	b.executable("bin/uv", uv)
	b.executable("bin/cart", "#!/usr/bin/python3\nimport os, sys\nsys.path.insert(0, os.getcwd())\nfrom main import run\nrun(sys.argv[1:])\n")
	r, err := b.sb.Run(t.Context(), envCommand("/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", "venv"))
	if err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	b.do("b total")
	const path = "PATH=$PWD/bin:$PATH "
	for entry, want := range map[string]string{
		"source venv/bin/activate && python main.py a":            "venv",
		". venv/bin/activate; python -m pytest -q tests":          "venv",
		"venv/bin/python -m pytest -q -s tests":                   "venv",
		"venv/bin/python -c 'import main; main.run([\"a\"])'":     "venv",
		path + "conda run -n shop python3 main.py 'a  b'":         "shop",
		path + "conda run -n shop env A=1 pytest -q tests":        "shop",
		path + "xvfb-run -a -s '-screen 0 1x1x8' python3 main.py": ":99",
		path + "xvfb-run cart a":                                  ":99",
		path + "uv run --with rich python main.py":                "venv",
		path + "uv run -m pytest -q tests":                        "venv",
		path + "uv run main.py 'a  b'":                            "venv",
		path + "nice -n 1 cart a":                                 "",
		"env A=1 timeout 100 python3 -m pytest -q tests":          "",
		"bash -lc 'cd tests && python3 ../main.py \"a  b\"'":      "",
		"cd tests && A=1 python3 -m unittest discover -t .. .":    "",
		"python3 -m pkg": "",
	} {
		r := b.doUnder(entry, "c")
		b.at(r, "pkg/prices.py", 17)
		got := b.do("!import os, sys; print(os.environ.get('CONDA_DEFAULT_ENV') or os.environ.get('DISPLAY') or (os.path.basename(sys.prefix)))")
		b.has(got, want)
		if strings.Contains(entry, "a  b") {
			b.do("up")
			b.has(b.do("p names"), "['a  b']")
		}
	}
}

func TestEachPythonBreakpointsInOtherPlaces(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "cd tests && PYTHONPATH=../lib "+py+" ../use.py")
		b.write("use.py", "import sys\nsys.path.insert(0, 'deeper')\nimport thirdparty.core as core\ndef late():\n    import lazy.mod\n    return lazy.mod.Thing().go()\nprint(core.f(1), late())\n")
		b.write("tests/use.py", "# a file of the same name where the program runs\nx = 1\n")
		b.write("lib/thirdparty/__init__.py", "")
		b.write("lib/thirdparty/core.py", "def f(x):\n    return x\n")
		b.write("tests/deeper/lazy/__init__.py", "")
		b.write("tests/deeper/lazy/mod.py", "class Thing:\n    def go(self):\n        out = 5\n        return out\n")
		b.has(b.do("b thirdparty.core.f"), "set at lib/thirdparty/core.py:2")
		b.has(b.do("b Thing.go"), "set at tests/deeper/lazy/mod.py:3")
		b.has(b.do("b use.py:7"), "set at use.py:7")
		b.has(b.do("b json.decoder.JSONDecoder.raw_decode"), "json/decoder.py:")
		b.has(b.do("b json:dumps"), "json/__init__.py:")
		b.at(b.do("c"), "use.py", 7)
		b.at(b.do("c"), "lib/thirdparty/core.py", 2)
		b.at(b.do("c"), "tests/deeper/lazy/mod.py", 3)
		b.has(b.do("restart ;; b"), "use.py:7", "tests/deeper/lazy/mod.py:3")
		b.do("c ;; c ;; c ;; cl")
		b.has(b.do("c"), "1 5", "exit code 0")
	})
}

// A file has one name, even if a path to it contains links.
func TestBreakpointsBehindLinks(t *testing.T) {
	b := open(t, "python3 link/start.py")
	b.write("real/start.py", "import helper\nx = helper.g()\n")
	b.write("real/helper.py", "def g():\n    return 4\n")
	if r, err := b.sb.Run(t.Context(), envCommand("ln", "-s", "real", "link")); err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	b.do("b link/helper.py:2")
	b.at(b.do("c"), "real/helper.py", 2)
	b.do("b real/start.py:2 ;; restart")
	b.at(b.do("c"), "real/start.py", 2)
}

func TestEachPythonPackedPrograms(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" packed")
		b.write("packed/__main__.py", "import inner\ndef go():\n    v = inner.h(2)\n    print('packed', v, __name__)\ngo()\n")
		b.write("packed/inner.py", "def h(x):\n    return x * 2\n")
		b.do("b packed/inner.py:2")
		b.at(b.do("c"), "packed/inner.py", 2)
		b.has(b.do("c"), "packed 4 __main__", "exit code 0")
		r, err := b.sb.Run(t.Context(), envCommand("/usr/bin/python3", "-m", "zipapp", "packed", "-o", "packed.pyz"))
		if err != nil || r.ExitCode != 0 {
			t.Fatal(r, err)
		}
		b.do("cl")
		b.has(b.doUnder(py+" packed.pyz", "unt 5"), "Current frame: packed.pyz/__main__.py:5 in <module>", "v = inner.h(2)")
		b.has(b.do("c"), "packed 4 __main__", "exit code 0")
	})
}

func TestEachPythonUnicodeNamesAndSources(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, "cd 'ünï cödé' && "+py+" prög.py")
		b.write("ünï cödé/prög.py", "def größe(名):\n    s = '日本語 ö ' + 名\n    bad = '\\ud800|\\udfff'\n    return s, bad\nprint(ascii(größe('é')))\n")
		b.has(b.do("b größe"), "set at ünï cödé/prög.py:2")
		b.at(b.do("c"), "ünï cödé/prög.py", 2)
		b.has(b.do("n ;; n ;; p s, 名"), "('日本語 ö é', 'é')")
		b.has(b.do("p bad"), `'\ud800|\udfff'`)
		b.has(b.do("!print(bad.encode('utf-8', 'replace'), 'ж')"), "ж")
		b.do("condition 1 名 == 'é'")
		b.do("restart")
		b.at(b.do("c"), "ünï cödé/prög.py", 2)
		b.has(b.do("c"), "exit code 0")
		b.write("latin.py", "# -*- coding: latin-1 -*-\ns = '\xe9'\nprint(len(s))\n")
		b.has(b.doUnder(py+" latin.py", "n ;; p len(s)"), "1\n")
	})
}

func TestHugeValuesAndLines(t *testing.T) {
	b := open(t, "python3 big.py")
	b.write("big.py", "big = list(range(500000))\ntext = 'é' * 1000000\nlong = '"+strings.Repeat("x", 100000)+"'\nlines = 'a\\n' * 100000\ndone = 1\n")
	b.at(b.do("unt 5"), "big.py", 5)
	for _, command := range []string{"p big", "p text", "p long", "!print(lines)", "p {'k': big}", "display big", "l 3", "pp big[:50000]"} {
		r := b.do(command)
		if len(r.Text) > 25000 {
			t.Errorf("%s: %d bytes", command, len(r.Text))
		}
		if command != "l 3" {
			b.has(r, "bytes of output cut ...]", "done = 1")
		}
		if strings.Contains(r.Text, "\uFFFD") {
			t.Errorf("%s: a character was cut", command)
		}
	}
	b.has(b.do("p big[:3]"), "[0, 1, 2]")
}
