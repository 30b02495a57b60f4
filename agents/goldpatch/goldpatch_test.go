package goldpatch

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// git runs git in dir without the machine's configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

type tree map[string]string

func (tr tree) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range tr {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// patchOf returns git's diff between two trees, and leaves the base tree in dir.
func patchOf(t *testing.T, dir string, from, to tree) string {
	t.Helper()
	git(t, dir, "init", "-q")
	from.write(t, dir)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	for name := range from {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	to.write(t, dir)
	git(t, dir, "add", "-A")
	patch := git(t, dir, "diff", "--cached", "-M", "HEAD")
	git(t, dir, "reset", "-q", "--hard")
	return patch
}

func read(t *testing.T, dir string) tree {
	t.Helper()
	out := tree{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// perform executes a call as the documentation of edit and bash describes.
func perform(t *testing.T, dir string, c schemas.ToolCall) {
	t.Helper()
	var a struct {
		Path       string
		NewCode    string `json:"new_code"`
		Start, End int
		Command    string
	}
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		t.Fatal(err)
	}
	if c.Name == "bash" {
		cmd := exec.Command("bash", "-c", a.Command)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", a.Command, err, out)
		}
		return
	}
	file := filepath.Join(dir, a.Path)
	if a.Start == 0 {
		tree{a.Path: a.NewCode}.write(t, dir)
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	bare := !strings.HasSuffix(string(raw), "\n")
	code := a.NewCode
	if code != "" && !strings.HasSuffix(code, "\n") {
		code += "\n"
	}
	after := strings.Join(lines[a.End:], "")
	text := strings.Join(lines[:a.Start-1], "") + code + after
	if bare && after == "" {
		text = strings.TrimSuffix(text, "\n")
	}
	if text == string(raw) {
		t.Errorf("the edit changes nothing: %s", c.Arguments)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkGold(t *testing.T, from, to tree) {
	t.Helper()
	dir := t.TempDir()
	patch := patchOf(t, dir, from, to)
	if patch == "" {
		return
	}
	calls, err := Edits(patch)
	if err != nil {
		t.Fatalf("%v\n%s", err, patch)
	}
	for _, c := range calls {
		if !c.GoldEdit || c.ID != "" {
			t.Errorf("call %+v", c)
		}
		perform(t, dir, c)
	}
	if diff := cmp.Diff(to, read(t, dir)); diff != "" {
		t.Errorf("%s\n%s", diff, patch)
	}
}

func TestEdits(t *testing.T) {
	long := strings.Repeat("line\n", 20)
	for name, c := range map[string][2]tree{
		"replace":             {{"a.py": "1\n2\n3\n"}, {"a.py": "1\ntwo\n3\n"}},
		"insert in between":   {{"a.py": "1\n2\n"}, {"a.py": "1\nx\ny\n2\n"}},
		"insert first":        {{"a.py": "1\n2\n"}, {"a.py": "x\n1\n2\n"}},
		"append":              {{"a.py": "1\n2\n"}, {"a.py": "1\n2\nx\n"}},
		"insert a blank line": {{"a.py": "1\n2\n"}, {"a.py": "1\n\n2\n"}},
		"delete lines":        {{"a.py": "1\n2\n3\n"}, {"a.py": "1\n3\n"}},
		"empty a file":        {{"a.py": "1\n2\n"}, {"a.py": ""}},
		"fill an empty file":  {{"a.py": "", "b": "x\n"}, {"a.py": "1\n2\n", "b": "x\n"}},
		"two hunks":           {{"a.py": "1\n" + long + "2\n"}, {"a.py": "one\nmore\n" + long + "two\n"}},
		"neighbours":          {{"a.py": "1\n2\n3\n4\n"}, {"a.py": "1\nx\n2\ny\n3\nfour\n"}},
		"new file":            {{"a.py": "1\n"}, {"a.py": "1\n", "pkg/new.py": "x\ny"}},
		"new empty file":      {{"a.py": "1\n"}, {"a.py": "1\n", "pkg/__init__.py": ""}},
		"delete file":         {{"a.py": "1\n", "it's.py": "2\n"}, {"a.py": "1\n"}},
		"rename and change":   {{"a.py": long + "1\n"}, {"b/c.py": long + "2\n"}},
		"end without newline": {{"a.py": "1\n2"}, {"a.py": "1\ntwo"}},
		"newline added":       {{"a.py": "1\n2"}, {"a.py": "1\n2\n"}},
		"newline removed":     {{"a.py": "1\n2\n"}, {"a.py": "1\n2"}},
		"appended to no end":  {{"a.py": "1\n2"}, {"a.py": "1\n2\n3\n"}},
		"CRLF":                {{"a.py": "1\r\n2\r\n"}, {"a.py": "1\r\ntwo\r\n"}},
	} {
		t.Run(name, func(t *testing.T) { checkGold(t, c[0], c[1]) })
	}
}

func TestEditsOnRandomChanges(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			var before, after strings.Builder
			for i := range 3 + rnd.IntN(30) {
				fmt.Fprintf(&before, "line %d\n", i)
				switch rnd.IntN(6) {
				case 0: // removed
				case 1:
					fmt.Fprintf(&after, "changed %d\n", i)
				case 2:
					fmt.Fprintf(&after, "line %d\n\nadded %d\n", i, i)
				default:
					fmt.Fprintf(&after, "line %d\n", i)
				}
			}
			checkGold(t, tree{"m.py": before.String()}, tree{"m.py": after.String()})
		})
	}
}

func TestEditsRefuse(t *testing.T) {
	for name, patch := range map[string]string{
		"nothing":    "no patch at all\n",
		"outside":    "--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n",
		"binary":     "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n",
		"no context": "--- a/x.py\n+++ b/x.py\n@@ -1,0 +2 @@\n+b\n",
	} {
		if calls, err := Edits(patch); err == nil {
			t.Errorf("%s: got %v", name, calls)
		}
	}
}

func TestLine(t *testing.T) {
	dir := t.TempDir()
	patch := patchOf(t, dir,
		tree{"tests/test_a.py": "x\n", "src/a.py": "# c\n\ndef f():\n    return 1\n"},
		tree{"tests/test_a.py": "y\n", "src/a.py": "# c\n\ndef f():\n    return 2\n"})
	if file, line, ok := Line(patch); !ok || file != "src/a.py" || line != 4 {
		t.Errorf("got %s:%d %v", file, line, ok)
	}
}

// Patches written by hand often lack git's header line.
func TestEditsWithoutGitHeader(t *testing.T) {
	calls, err := Edits("--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n")
	if err != nil || len(calls) != 1 || string(calls[0].Arguments) != `{"end":1,"new_code":"b\n","path":"src/x.py","start":1}` {
		t.Errorf("%v, %v", calls, err)
	}
}

func FuzzEdits(f *testing.F) {
	f.Add("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
	f.Add("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n")
	f.Add("diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n")
	f.Fuzz(func(t *testing.T, patch string) {
		calls, err := Edits(patch)
		if err != nil {
			return
		}
		for _, c := range calls {
			if !json.Valid(c.Arguments) {
				t.Fatalf("bad call %+v", c)
			}
		}
		Line(patch)
	})
}
