package pdb

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

func TestEntrypointsAreLaunched(t *testing.T) {
	const u, v = ` -u -c "$1" "$3" `, `bash -c "$2" sh "$1" "$3" `
	cases := map[string]string{
		"python -m pytest -q tests/test_a.py": "exec python" + u + "-m pytest -q tests/test_a.py",
		"python3 x.py arg":                    "exec python3" + u + "x.py arg",
		"/opt/v/bin/python3.12 x.py":          "exec /opt/v/bin/python3.12" + u + "x.py",
		"python3.13t x.py":                    "exec python3.13t" + u + "x.py",
		"FOO=1 BAR='a b' python -m unittest":  "FOO=1 BAR='a b' exec python" + u + "-m unittest",
		"cd sub && python -m pytest":          "{ cd sub\n} </dev/null && exec python" + u + "-m pytest",
		"cd a; X=1 python x.py;":              "{ cd a\n} </dev/null ; X=1 exec python" + u + "x.py",
		"cd a # here\npython x.py":            "{ cd a # here\n} </dev/null\nexec python" + u + "x.py",
		"\n# why\npython x.py":                "exec python" + u + "x.py",
		"python -W error -X dev -Wd x.py":     "exec python -W error -X dev -Wd" + u + "x.py",
		"python -OO -um pytest a":             "exec python -OO -u" + u + "-m pytest a",
		"python -mpytest 'a b'":               "exec python" + u + "-m 'pytest' 'a b'",
		`python -c "import x; x.f()" $HOME *`: "exec python" + u + `-c "import x; x.f()" $HOME *`,
		"python -m pdb x.py 1":                "exec python" + u + "x.py 1",
		"python -m pdb -c continue -m pytest": "exec python" + u + "-m pytest",
		"python x.py 2>&1":                    "exec python" + u + "x.py",
		"time timeout -k 5 60 python x.py":    "exec python" + u + "x.py",
		"env -i A=1 python x.py":              "exec env -i A=1 python" + u + "x.py",
		"xvfb-run -a python x.py":             "exec xvfb-run -a python" + u + "x.py",
		"uv run pytest -x":                    "exec uv run " + v + "pytest -x",
		"uv run --with rich -q pytest":        "exec uv run --with rich -q " + v + "pytest",
		"uv run python -m pytest":             "exec uv run python" + u + "-m pytest",
		"uv run -m pytest":                    "exec uv run python" + u + "-m pytest",
		"uv run x.py a":                       "exec uv run python" + u + "x.py a",
		"poetry run x.py":                     "exec poetry run " + v + "x.py",
		"conda run -n x pytest -x":            "exec conda run --no-capture-output -n x " + v + "pytest -x",
		"micromamba run -n x python y.py":     "exec micromamba run -n x python" + u + "y.py",
		"env X=1 pytest":                      "exec env X=1 " + v + "pytest",
		"nice -n 5 env A=b timeout 9 pytest":  "exec nice -n 5 env A=b " + v + "pytest",
		"xvfb-run -s '-screen 0' pytest -x":   "exec xvfb-run -s '-screen 0' " + v + "pytest -x",
		"stdbuf -oL python x.py":              "exec stdbuf -oL python" + u + "x.py",
		"bash -lc 'cd a && python x.py'":      `exec bash -lc '{ cd a` + "\n" + `} </dev/null && exec python -u -c "$1" "$3" x.py' sh "$1" "$2" "$3"`,
		"pytest -x":                           "exec " + v + "pytest -x",
		"./run_tests.py":                      "exec " + v + "./run_tests.py",
		"$PY x.py":                            "exec " + v + "$PY x.py",
		"make test":                           "exec " + v + "make test",
		"echo $(cat <a | wc) && python x.py":  "{ echo $(cat <a | wc)\n} </dev/null && exec python" + u + "x.py",
	}
	for entry, want := range cases {
		got, err := launchLine(entry)
		if err != nil || got != want {
			t.Errorf("launchLine(%q)\n got %q, %v\nwant %q", entry, got, err, want)
		}
	}
}

func TestLaunchLineErrors(t *testing.T) {
	for entry, why := range map[string]string{
		"":                            "empty",
		"FOO=1":                       "no command",
		"python":                      "no module and no script",
		"python -":                    "standard input",
		"python -i x.py":              "-i makes no sense",
		"python -m":                   "needs a value",
		"python x.py | tail -5":       "pipes",
		"python x.py > out.txt":       "redirections",
		"python < x.py":               "redirections",
		"python x.py || true":         "pipes",
		"python x.py &":               "pipes",
		"(cd a && python x.py)":       "subshells",
		"python 'x.py":                "not closed",
		"python $(x.py":               "not closed",
		"coverage run -m pytest":      "coverage",
		"python -m coverage run x":    "leave `coverage run` out",
		"uv run tox -e py312":         "tox runs the tests in other processes",
		"A=1 python3 -m nox -s tests": "nox runs the tests in other processes",
		"python -m pdb":               "no program",
		"uv run":                      "no program",
		"env FOO=1":                   "no command after env",
		"bash run.sh":                 "runs a script",
		"bash -c \"pytest $X\"":       "one quoted text",
		"bash -c 'pytest | cat'":      "pipes",
		"for i in 1; do pytest; done": "loops",
		"python - <<EOF\nx\nEOF":      "here-documents",
		"python x.py\x00":             "NUL",
		"timeout 5":                   "no command",
	} {
		got, err := launchLine(entry)
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "python -m pytest") {
			t.Errorf("launchLine(%q) = %q, %v, want %q", entry, got, err, why)
		}
	}
}

// FuzzLaunchLine checks that launchLine does not panic, and that it returns a valid shell line if the
// entrypoint is one.
func FuzzLaunchLine(f *testing.F) {
	for _, s := range []string{"cd a && F=1 python -m pytest 'x y' $(ls) `ls`", "python -c \"a\\\"b\"", "uv run pytest",
		"a=${b:-c} pytest # no", "python -W x -mpdb y.py;;", "python x 2>&1 \\\n y", "\v\n0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		line, err := launchLine(entry)
		if err != nil || len(entry) > 200 {
			return
		}
		check := func(s string) error { return exec.Command("bash", "-n", "-c", s).Run() }
		if bad := check(line); bad != nil && check(entry) == nil {
			t.Errorf("launchLine(%q) = %q is not a shell line", entry, line)
		}
	})
}

func TestEntrypointsThatCannotBeDebugged(t *testing.T) {
	b := open(t, "make")
	r := b.try("n")
	b.has(r, "make is not a Python program, so pdb cannot run it. Pass an entrypoint such as: python -m pytest tests/test_x.py", "exit code 126")
	if !r.IsError || r.Frame != nil {
		t.Errorf("got %+v", r)
	}
	for entry, want := range map[string]string{
		"no-such-command -x":   "no-such-command: command not found",
		"bash run.sh":          "it runs a script of the shell",
		"python3 x.py | cat":   "pipes",
		"cd nowhere && pytest": "nowhere: No such file",
		"python3 missing.py":   "No such file or directory: '",
	} {
		r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "n", Entrypoint: entry, Timeout: longTimeout})
		if err != nil {
			t.Fatal(err)
		}
		b.has(r, want)
		if !r.IsError || strings.Contains(r.Text, "Traceback") {
			t.Errorf("%q: %+v", entry, r)
		}
	}
}

func TestConsoleCommandsAndScripts(t *testing.T) {
	b := open(t, "./run.py 'a b' $((3*4))")
	const body = "import sys\nprint(sys.argv[0].endswith('run.py'), sys.argv[1:], sys.path[0].endswith('work'))\nx = __name__\nassert __file__.endswith('.py')\n"
	b.write("run.py", "#!/usr/bin/env python3\n"+body)
	b.has(b.do("n"), "Current frame: run.py:3")
	b.has(b.do("c"), "exit code 0")
	b.write("run.py", "#!/usr/bin/python3 -E\n"+body)
	r := b.do("n ;; n ;; n ;; p x")
	b.has(r, "True ['a b', '12'] True", "'__main__'")
	b.write("odd", "#!/bin/sh\n'''exec' \"/usr/bin/python3\" \"$0\" \"$@\"\n' '''\nimport sys\nprint(sys.argv[1:])\n")
	if r, err := b.sb.Run(t.Context(), envCommand("chmod", "+x", "odd")); err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	got, err := b.Command(t.Context(), env.DebuggerCommand{Text: "c", Entrypoint: "./odd 1 2", Timeout: longTimeout})
	if err != nil {
		t.Fatal(err)
	}
	b.has(got, "['1', '2']", "exit code 0")
}
