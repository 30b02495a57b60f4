package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A depth below 1 is an error, the default is 1, and more than 20 means 20.
func TestB19ListdirArguments(t *testing.T) {
	b := newToolSession(t, project)
	want := "/testbed/src/\n  -dash.py\n  odd:na me.py\n  pkg/\n    mod.py\n    other.txt\n"
	for _, depth := range []any{2, "2", 2.0, 99} {
		if d := cmp.Diff(want, b.ok("listdir", args{"path": "src/", "depth": depth})); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	want = "/testbed/src/\n  -dash.py\n  odd:na me.py\n  pkg/\n"
	for _, a := range []args{{"path": "src"}, {"path": "/testbed/src", "depth": nil}, {"path": "./src/pkg/..", "depth": 1}} {
		if d := cmp.Diff(want, b.ok("listdir", a)); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	b.refused("listdir", args{"depth": 0}, "1 to 20")
	b.refused("listdir", args{"depth": -1}, "1 to 20")
	b.refused("listdir", args{"path": "a.py"}, "is a file", "view")
	b.refused("listdir", args{"path": "sources"}, "does not exist")
	b.refused("listdir", args{"path": "outdir"}, "outside")
}

// The tree uses indentation instead of drawn branches: it takes fewer tokens, and names
// can be copied.
func TestB20ListdirLayout(t *testing.T) {
	b := newToolSession(t, project)
	b.sh(`mkdir hollow; touch $'new\nline' a10.py a9.py; mkfifo pipe`)
	want := "/testbed/\n  .git/\n  __pycache__/\n  a    b/\n  a.py\n  a9.py\n  a10.py\n  bin.dat\n  broken -> nowhere\n  cr.txt\n  crlf.py\n" +
		"  dirlink -> src/pkg\n  empty.py\n  hollow/\n  latin.py\n  link.py -> src/pkg/mod.py\n  long.py\n  mixed.txt\n  \"new\\nline\"\n  open.py\n" +
		"  out -> /etc/passwd\n  outdir -> /etc\n  pipe (special file)\n  run.sh*\n  src/\n  wide.txt\n"
	if d := cmp.Diff(want, b.ok("listdir", args{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := b.ok("listdir", args{"path": "hollow"}); got != "/testbed/hollow/\n  (empty)\n" {
		t.Errorf("empty directory: %q", got)
	}
	if got := b.ok("listdir", args{"depth": 20}); strings.Contains(got, "config") || strings.Contains(got, "x.pyc") || !strings.Contains(got, "    pkg/\n      mod.py\n") {
		t.Errorf("a whole tree:\n%s", got)
	}
}

// This test proves row WC39 of docs/internals/parity.md.
func TestWC39NamesWithFourSpaces(t *testing.T) {
	b := newToolSession(t, files{"a    b/c    d.txt": "x", "    lead": "x"})
	if got := b.ok("listdir", args{"depth": 2}); got != "/testbed/\n  \"    lead\"\n  a    b/\n    c    d.txt\n" {
		t.Errorf("got %q", got)
	}
}

// Entries that do not fit are counted, and the first levels are complete.
func TestListdirLimits(t *testing.T) {
	b := newToolSession(t, files{})
	b.sh("mkdir -p many d1/e d2/e; cd many; touch $(seq 1200); cd ../d1/e; touch $(seq 700); cd ../../d2/e; touch $(seq 700)")
	for want, a := range map[string]args{
		"  1000\n[and 200 more; list a subdirectory, or use a smaller depth]\n":                              {"path": "many"},
		"/testbed/\n  d1/\n  d2/\n  many/\n[and 2602 more below level 1; list a subdirectory to see them]\n": {"depth": 5},
		"/testbed/d1/\n  e/\n    1\n    2\n":                                                                 {"path": "d1", "depth": 2},
	} {
		if got := b.ok("listdir", a); !strings.HasSuffix(got, want) && !strings.HasPrefix(got, want) {
			t.Errorf("%v: begins %.80q, ends %q", a, got, got[max(0, len(got)-90):])
		}
	}
	b.sh("chmod 000 /testbed/d1")
	if got := b.ok("listdir", args{"depth": 2}); !strings.Contains(got, "[1 of the directories could not be read]") {
		t.Errorf("an unreadable directory: %q", got[max(0, len(got)-90):])
	}
}

func TestListdirIgnoreSetting(t *testing.T) {
	b := newToolSessionWith(t, files{"build/x": "", "src/y.py": "", ".git/config": ""}, settings{"listdir": {"ignore": []string{"bui*"}}})
	if got := b.ok("listdir", args{"depth": 2}); got != "/testbed/\n  .git/\n    config\n  build/\n  src/\n    y.py\n" {
		t.Errorf("got %q", got)
	}
	if description := b.set.Schemas()[4].Description; b.set.Schemas()[4].Name != "listdir" || !strings.Contains(description, "directories named bui* are omitted") {
		t.Errorf("described as %q", description)
	}
}

// Tools that read or write files start no program of the image.
func TestWP10FileToolsStartNoProcess(t *testing.T) {
	b := newToolSession(t, project)
	counted := &countingSandbox{Sandbox: b.Sandbox}
	b.Sandbox = counted
	b.reset()
	b.ok("listdir", args{"depth": 3})
	b.ok("grep", args{"pattern": "total"})
	b.ok("view", args{"path": "a.py"})
	b.ok("edit", args{"path": "a.py", "new_code": "x = 1", "start": 1})
	b.refused("view", args{"path": "modd.py"}, "Did you mean src/pkg/mod.py?")
	if counted.processes != 0 {
		t.Errorf("%d processes were started", counted.processes)
	}
}
