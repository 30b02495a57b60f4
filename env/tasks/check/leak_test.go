package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// till is a repository with a bug. tillFixed has a word, a text and a line that the repository lacks.
// The tests run with unittest, which starts faster than pytest.
var till = project{
	"till/__init__.py":  "",
	"till/money.py":     "def total(prices):\n    return sum(prices[1:])\n",
	"tests/__init__.py": "",
	"tests/test_money.py": "import unittest\n\nfrom till.money import total\n\n\nclass Money(unittest.TestCase):\n" +
		"    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n\n" +
		"    def test_nothing(self):\n        self.assertEqual(total([]), 0)\n",
	"README": "A till.\n",
}

const tillFixed = "def total(prices):\n    running_sum = sum(prices)\n    assert running_sum >= 0, \"never below nothing\"\n    return running_sum\n"

func tillTask(gold string) schemas.Task {
	return schemas.Task{
		Source: "test", InstanceID: "till", Instructions: "The sum of two prices is too small.", Entrypoint: "python3 -m unittest -q",
		Workdir: schemas.DefaultWorkdir, GoldPatch: gold, Tests: schemas.TestSpec{
			Method: schemas.VerifyUnittest, Files: []string{"tests/**"},
			FailToPass: []string{"tests.test_money.Money.test_total"}, PassToPass: []string{"tests.test_money.Money.test_nothing"},
		},
	}
}

// mountedFiles writes files to a directory of the host that a test mounts into the sandbox.
func mountedFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runOnHost(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "PYTHONDONTWRITEBYTECODE=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// history returns a function that makes a directory to mount. Only its .git directory contains the fixed version.
func history(packed bool) func(t *testing.T) string {
	return func(t *testing.T) string {
		dir := mountedFiles(t, map[string]string{"src/till/money.py": tillFixed})
		src := filepath.Join(dir, "src")
		runOnHost(t, src, "git", "init", "-q")
		runOnHost(t, src, "git", "add", "-A")
		runOnHost(t, src, "git", "commit", "-qm", "next")
		if packed {
			runOnHost(t, src, "git", "gc", "-q")
		}
		runOnHost(t, src, "rm", "-r", "till")
		return dir
	}
}

// compiled returns a function that makes a directory to mount, with a compiled Python file.
func compiled(text string) func(t *testing.T) string {
	return func(t *testing.T) string {
		dir := mountedFiles(t, map[string]string{"lib/till/money.py": text})
		runOnHost(t, dir, "/usr/bin/python3", "-m", "compileall", "-q", "lib")
		runOnHost(t, dir, "rm", "lib/till/money.py")
		return dir
	}
}

func TestFactoryLeaksAreFoundWithPathAndToken(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	gold := patch(t, cfg, till, till.with(project{"till/money.py": tillFixed}))
	files := func(list map[string]string) func(t *testing.T) string {
		return func(t *testing.T) string { return mountedFiles(t, list) }
	}
	cases := map[string]struct {
		mount  func(t *testing.T) string
		tree   project
		change func(*schemas.Task, *Config)
		place  string // "" = no leak
		token  string
	}{
		"nothing":                  {},
		"the repository elsewhere": {mount: files(map[string]string{"lib/till/money.py": till["till/money.py"], "lib/other/money.py": "running_sum = 0\n"})},
		"installed copy":           {mount: files(map[string]string{"lib/till/money.py": tillFixed}), place: "/opt/task/lib/till/money.py", token: "till/money.py"},
		"another version's layout": {mount: files(map[string]string{"lib/till/core/money.py": tillFixed}), place: "/opt/task/lib/till/core/money.py", token: "running_sum = sum(prices)"},
		"its bytecode": {mount: func(t *testing.T) string {
			dir := mountedFiles(t, map[string]string{"lib/till/core/money.py": tillFixed})
			runOnHost(t, dir, "/usr/bin/python3", "-m", "compileall", "-q", "-b", "lib")
			runOnHost(t, dir, "rm", "lib/till/core/money.py")
			return dir
		}, place: "/opt/task/lib/till/core/money.pyc", token: "<module>"},
		"a word in another layout":   {mount: files(map[string]string{"lib/till/core/money.py": "running_sum = 7\n", "lib/tillage/core/money.py": tillFixed})},
		"loose objects":              {mount: history(false), place: "/opt/task/src/.git/objects/", token: "running_sum = sum(prices)"},
		"packed objects":             {mount: history(true), place: ".pack", token: "running_sum = sum(prices)"},
		"bytecode":                   {mount: compiled(tillFixed), place: "/opt/task/lib/till/__pycache__/money.cpython-", token: "<module>"},
		"bytecode of the repository": {mount: compiled(till["till/money.py"])},
		"metadata":                   {mount: files(map[string]string{"lib/till-1.0.dist-info/METADATA": "Name: till\n\nKeeps a running_sum now.\n"}), place: "dist-info/METADATA", token: "running_sum"},
		"archive": {mount: func(t *testing.T) string {
			dir := mountedFiles(t, map[string]string{"till/money.py": tillFixed})
			runOnHost(t, dir, "/usr/bin/python3", "-m", "zipfile", "-c", "till-1.0-py3-none-any.whl", "till")
			runOnHost(t, dir, "rm", "-r", "till")
			return dir
		}, place: "till-1.0-py3-none-any.whl!till/money.py", token: "till/money.py"},
		"environment": {change: func(_ *schemas.Task, c *Config) { c.Spec.Env = []string{"HINT=use running_sum"} }, place: "environment: HINT", token: "running_sum"},
		"text":        {change: func(t *schemas.Task, _ *Config) { t.Instructions = "Add running_sum." }, place: "task text", token: "running_sum"},
		"build left in the repository": {tree: till.with(project{"build/lib/till/money.py": tillFixed}),
			place: "/testbed/build/lib/till/money.py", token: "till/money.py"},
		"copy in the repository": {tree: till.with(project{"old/money.py": tillFixed}), place: "old/money.py", token: "till/money.py"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, task, tree := cfg, tillTask(gold), till
			cfg.Runs, cfg.Isolated = 1, -1
			if c.mount != nil {
				cfg.Spec.Mounts = []env.Mount{{Host: c.mount(t), Path: "/opt/task"}}
			}
			if c.tree != nil {
				tree = c.tree
			}
			if c.change != nil {
				c.change(&task, &cfg)
			}
			rep, err := Task(t.Context(), cfg, task, tree.tree(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.place == "" {
				if rep.Status != Sound || len(rep.Leaks) > 0 || rep.Tokens == 0 {
					t.Errorf("%s: %s %+v", rep.Status, rep.Reason, rep.Leaks)
				}
				return
			}
			found := false
			for _, l := range rep.Leaks {
				found = found || strings.Contains(l.Place, c.place) && l.Token == c.token
			}
			if rep.Status != Leaking || !found {
				t.Errorf("%s: %s %+v; want %s in %s", rep.Status, rep.Reason, rep.Leaks, c.token, c.place)
			}
		})
	}
}

// What a published text reveals about the fix is only a note. A copy that pip bundles has another status than one in
// the task's own places.
func TestFactoryQuotedWordsAreNotesAndPipCopiesHaveTheirRemedy(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	gold := patch(t, cfg, till, till.with(project{"till/money.py": tillFixed}))
	published := func(text string) schemas.Task {
		task := tillTask(gold)
		task.Instructions, task.Origin = text, &schemas.Origin{UpstreamRepo: "github.com/owner/till"}
		return task
	}
	vendored := mountedFiles(t, map[string]string{"lib/pip/_vendor/till/money.py": tillFixed})
	for name, c := range map[string]struct {
		task   schemas.Task
		mounts []env.Mount
		want   Status
		quoted []string
		from   string
	}{
		"the issue quotes a word": {task: published("It should use `running_sum`."), want: Sound, quoted: []string{"running_sum"}},
		"the issue quotes the fix, which lies elsewhere too": {
			task:   published("I changed it:\n\n" + tillFixed),
			mounts: []env.Mount{{Host: mountedFiles(t, map[string]string{"notes/till-1.dist-info/METADATA": "running_sum\n"}), Path: "/opt/task"}},
			want:   Sound, quoted: []string{"running_sum", "never below nothing"}},
		"a generated task says it": {task: func() schemas.Task {
			task := published("Use running_sum.")
			task.Origin.ParentTreeSHA256 = strings.Repeat("0", 64)
			return task
		}(), want: Leaking, from: FromTask},
		"pip's copy": {task: published("too small"), mounts: []env.Mount{{Host: vendored, Path: "/opt/python"}}, want: Exposed, from: FromPip},
		"pip's copy and an own one": {task: published("too small"), want: Leaking, from: FromTask, mounts: []env.Mount{
			{Host: vendored, Path: "/opt/python"}, {Host: mountedFiles(t, map[string]string{"lib/till/money.py": tillFixed}), Path: "/opt/task"}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Runs, cfg.Isolated, cfg.Spec.Mounts = 1, -1, c.mounts
			rep, err := Task(t.Context(), cfg, c.task, till.tree(t))
			if err != nil || rep.Status != c.want {
				t.Fatalf("%s: %s %+v, %v; want %s", rep.Status, rep.Reason, rep.Leaks, err, c.want)
			}
			quoted := map[string]bool{}
			for _, q := range rep.Quoted {
				quoted[q.Token] = true
			}
			for _, token := range c.quoted {
				if !quoted[token] {
					t.Errorf("%q is not among what the text quotes: %+v", token, rep.Quoted)
				}
			}
			if c.from != "" && !slices.ContainsFunc(rep.Leaks, func(l Leak) bool { return l.From == c.from }) {
				t.Errorf("no leak from %s: %+v", c.from, rep.Leaks)
			}
			if c.want == Exposed && !strings.Contains(rep.Remedy, "bare interpreter") {
				t.Errorf("remedy %q", rep.Remedy)
			}
		})
	}
}

// A file of the host with the name of a changed module is a copy if it has lines of the fix, but not if it has only a
// word.
func TestUnrelatedFilesOfTheSameNameAreNotLeaks(t *testing.T) {
	cfg := config(t)
	flat := project{"till.py": till["till/money.py"], "test_till.py": strings.Replace(till["tests/test_money.py"], "till.money", "till", 1)}
	task := tillTask(patch(t, cfg, flat, flat.with(project{"till.py": tillFixed})))
	task.Tests.Files, task.Tests.FailToPass, task.Tests.PassToPass = []string{"test_*.py"}, []string{"test_till.Money.test_total"}, nil
	cfg.Runs, cfg.Isolated = 1, -1
	for text, want := range map[string]Status{
		"running_sum = 7\n": Sound, "def other(prices):\n    assert running_sum >= 0, \"never below nothing\"\n": Leaking,
	} {
		cfg.Spec.Mounts = []env.Mount{{Host: mountedFiles(t, map[string]string{"lib/other/till.py": text}), Path: "/opt/task"}}
		rep, err := Task(t.Context(), cfg, task, flat.tree(t))
		if err != nil || rep.Status != want {
			t.Errorf("%q: %s %s %+v, %v", text, rep.Status, rep.Reason, rep.Leaks, err)
		}
	}
}

func TestLeaksAreAttributedToTheirOwner(t *testing.T) {
	c := &checker{Config: Config{Spec: env.SandboxSpec{Mounts: []env.Mount{{Path: "/opt/task"}}}}}
	task := schemas.Task{Workdir: "/testbed"}
	for place, want := range map[string]string{
		"environment: HINT": FromTask, "/testbed/a.py": FromTask, "/opt/task/lib/a.py": FromTask, "/opt/tasks/a.py": FromHost,
		"/usr/lib/python3/dist-packages/requests/api.py": FromHost, "/proc/7/environ": FromTask,
		"/opt/task/lib/python3.9/site-packages/pip/_vendor/requests/api.py": FromPip,
	} {
		if got := c.owner(place, task); got != want {
			t.Errorf("%s is from %s, want %s", place, got, want)
		}
	}
	task.Image, c.Driver = "debian:12", envtest.Driver(t, "docker")
	if got := c.owner("/usr/lib/python3/dist-packages/requests/api.py", task); got != FromTask {
		t.Errorf("an image's package is from %s", got)
	}
}

// A fix without new words, such as a changed operator, is recognized by its bytecode.
func TestBytecodeOfAFixWithoutWordsIsFound(t *testing.T) {
	cfg := config(t)
	fixed := strings.Replace(till["till/money.py"], "[1:]", "[0:]", 1)
	cfg.Runs, cfg.Isolated = 1, -1
	cfg.Spec.Mounts = []env.Mount{{Host: compiled(fixed)(t), Path: "/opt/task"}}
	rep, err := Task(t.Context(), cfg, tillTask(patch(t, cfg, till, till.with(project{"till/money.py": fixed}))), till.tree(t))
	if err != nil || rep.Status != Leaking || rep.Leaks[0].Kind != "code" {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestProseIsNotALeak(t *testing.T) {
	s := secrets{Lines: []string{"return running_sum + offset"}, Words: []string{"offset", "reversed_order"}, Texts: []string{"never below nothing"}}
	for text, want := range map[string]string{
		"The offset of a page is wrong.":             "",
		"Call `offset` once more.":                   "offset",
		"page.offset is wrong":                       "offset",
		"offset() raises":                            "offset",
		"Use reversed_order here":                    "reversed_order",
		"It says never below nothing.":               "never below nothing",
		"Write\n\n    return running_sum + offset\n": "return running_sum + offset",
		"in_reversed_order is another":               "",
	} {
		if got, _ := s.find(text); got != want {
			t.Errorf("%q gives %q away, want %q", text, got, want)
		}
	}
}

func TestReadLeaksSkipsInvalidLines(t *testing.T) {
	leaks, done := readLeaks([]byte("junk\n{\"place\": 7}\n{\"place\":\"/a\",\"token\":\"" + strings.Repeat("x", 1000) + "\",\"kind\":\"word\"}\n{}\n[1]\n"))
	if done || len(leaks) != 1 || len(leaks[0].Token) > 210 {
		t.Errorf("%+v, %v", leaks, done)
	}
}
