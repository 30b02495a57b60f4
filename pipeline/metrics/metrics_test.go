package metrics

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

func call(name, command string) *schemas.ToolCall {
	args, _ := json.Marshal(map[string]string{"command": command})
	return &schemas.ToolCall{Name: name, Arguments: args}
}

func TestKind(t *testing.T) {
	for _, c := range []struct{ tool, command, want string }{
		{"view", "", SeekStatic}, {"pdb", "n", SeekDynamic}, {"rewrite", "", Edit}, {"eval", "", Verify}, {"submit", "", Submit}, {"web", "", Exec},
		{"bash", "cat a.py | head -3", SeekStatic}, {"bash", "cd src && grep -rn x . 2>&1", Exec}, {"bash", "cd src && grep -rn x .", SeekStatic},
		{"bash", "git -C . log --oneline", Exec}, {"bash", "git log -3", SeekStatic}, {"bash", "cat a > b", Exec}, {"bash", "python -m pytest -q", Verify},
		{"bash", "find . -name '*.py' -delete", Exec}, {"bash", "sed -n 1,5p a.py", SeekStatic}, {"bash", "sed -i s/a/b/ a.py", Exec}, {"bash", "rm -r x", Exec},
	} {
		if got := Kind(call(c.tool, c.command)); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.tool, c.command, got, c.want)
		}
	}
	if Kind(nil) != Think {
		t.Error("a turn without a call is not Think")
	}
}

func TestPDBCommand(t *testing.T) {
	for text, want := range map[string]string{"": "", "  ": "", "p x": "p", "b a.py:3": "b", "p(x)": "p", "pp(x.y)": "pp", "parse(x)": "parse(x)"} {
		if got := PDBCommand(call("pdb", text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if PDBCommand(&schemas.ToolCall{Name: "pdb", Arguments: json.RawMessage(`[1]`)}) != "" {
		t.Error("arguments that are not an object give a command")
	}
}

func TestLeaks(t *testing.T) {
	for _, c := range []struct {
		tool, command string
		want          []string
	}{
		{"bash", "git log --all --oneline", []string{"git_log_all"}},
		{"bash", "git -C /testbed show 1a2b3c4d", []string{"git_show_hash"}},
		{"bash", "git diff HEAD~1 deadbeef12 -- a.py", []string{"git_diff_hash"}},
		{"bash", "git --no-pager cherry-pick x", []string{"git_cherry_pick"}},
		{"bash", "cd /tmp; curl https://example.org", []string{"curl"}},
		{"bash", "git fetch origin && pip install x", []string{"git_remote", "pip"}},
		{"pdb", "!__import__('os').system('wget x')", []string{"curl"}},
		{"pdb", "p urllib.request.urlopen('http://x')", []string{"http_library"}},
		{"bash", "git log -3 && git status && git diff", nil},
		{"bash", "git show HEAD", nil},
		{"bash", "grep -rn curl_easy src", nil},
		{"pdb", `!import os; os.system("git log --all")`, []string{"git_log_all"}},
		{"pdb", `!import subprocess; subprocess.run(["git", "show", "1a2b3c4d"])`, []string{"git_show_hash"}},
		{"bash", `python3 -c "import subprocess as s; s.run(['git','log','--all'])"`, []string{"git_log_all"}},
		{"bash", "git show origin/main:app.py", []string{"git_show_hash"}},
		{"bash", "git checkout upstream/main -- app.py", []string{"git_other_commit"}},
		{"bash", "git reset --hard 1a2b3c4d", []string{"git_other_commit"}},
		{"bash", "git log -p 1a2b3c4d5e", []string{"git_log_all"}},
		{"bash", "git checkout -- app.py; git stash; git reset --hard; git blame app.py", nil},
		{"bash", "cat .git/logs/HEAD", []string{"git_reflog"}},
		{"bash", "python3 -m pip install --upgrade thing", []string{"pip"}},
		{"bash", "uv pip install thing", []string{"pip"}},
		{"bash", "pip install -r requirements.txt", []string{"pip"}},
		{"bash", "pip install -q -e '.[test]' && pip install .", nil},
		{"bash", "pip install -e . && pip install thing", []string{"pip"}},
		{"bash", "pip show thing; pip list", nil},
		{"bash", "python3 -c \"import http.client as h; h.HTTPSConnection('x')\"", []string{"http_library"}},
		{"bash", "gh pr view 12 --repo a/b", []string{"remote_program"}},
		{"bash", "curl -s http://localhost:5000/items", nil},
		{"bash", "curl -s http://localhost:5000 http://example.org", []string{"curl"}},
		{"bash", "curl -s example.org", []string{"curl"}},
		{"pdb", "p requests.get('http://127.0.0.1:8000/')", nil},
		{"bash", `grep -rn "requests.get(" src | head; rg 'curl ' docs`, nil},
		{"bash", `grep -n x $(curl -s http://x.org)`, []string{"curl"}},
		{"bash", `grep -rn a src; curl http://x.org`, []string{"curl"}},
		{"bash", "python3 -m pytest -k rsync; ls gh ssh", nil},
		{"edit", "curl https://example.org", nil},
		{"view", "git log --all", nil},
	} {
		if diff := cmp.Diff(c.want, Leaks(call(c.tool, c.command), "")); diff != "" {
			t.Errorf("%s %q: %s", c.tool, c.command, diff)
		}
	}
	for command, isLeak := range map[string]bool{
		"pip install asgiref 'numpy>=1.20' -q": false, "pip install Django==4.2": true, "pip download django": true, "pip install django_stubs": true,
		"apt-get install -y python3-django": true, "pip install git+https://example.org/x": true, "pip install -r requirements.txt": true,
		"pip install asgiref && pip install django": true, "pip install": true, "pip install /tmp/asgiref": true,
	} {
		if got := Leaks(call("bash", command), "github.com/django/django"); (got != nil) != isLeak {
			t.Errorf("%s: %v", command, got)
		}
	}
	if Leaks(call("bash", "pip install pvlib"), "github.com/pvlib/pvlib-python") == nil {
		t.Error("the package of the repository is no leak")
	}
	if h, n := LeakClasses([]string{"git_show_hash"}); !h || n {
		t.Error("git_show_hash is not only a leak of history")
	}
}

const oneFile = "diff --git a/a.py b/a.py\nindex 1111111..2222222 100644\n--- a/a.py\n+++ b/a.py\n@@ -10,2 +10,2 @@\n x\n-y\n+z\n"

func TestParsePatch(t *testing.T) {
	p, err := ParsePatch([]byte(oneFile + "diff --git a/tests/test_new.py b/tests/test_new.py\nnew file mode 100644\nindex 0000000..2222222\n--- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1 @@\n+pass\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.py", "tests/test_new.py"}, p.Files); diff != "" || p.Added != 2 || p.Deleted != 1 {
		t.Errorf("%s +%d -%d", diff, p.Added, p.Deleted)
	}
	if p.EditsTests() || len(p.Tests()) != 1 {
		t.Error("a new test counts as an edit of tests")
	}
	one, _ := ParsePatch([]byte(oneFile))
	empty, _ := ParsePatch(nil)
	if one.Similarity(one) != 1 || one.Similarity(empty) != 0 || empty.Similarity(empty) != 0 {
		t.Error("the similarity of equal or empty patches is wrong")
	}
	if !one.hits("a.py", 11, 11) || one.hits("a.py", 12, 20) || one.hits("b.py", 11, 11) {
		t.Error("hits is wrong about the line range of a hunk")
	}
	conf, _ := ParsePatch([]byte("diff --git a/conftest.py b/conftest.py\nnew file mode 100644\nindex 0000000..2222222\n--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+pass\n"))
	if !conf.EditsTests() {
		t.Error("a new test configuration does not count as an edit of tests")
	}
}

func TestSteppingIsNotARepeat(t *testing.T) {
	row := func(i int32, tool, args, hash string) schemas.StepRow {
		return schemas.StepRow{StepIndex: i, TurnIndex: &i, Source: "agent", ToolName: &tool, ArgumentsJSON: &args, ObservationSHA256: &hash, ActionKind: SeekDynamic}
	}
	rows := []schemas.StepRow{row(0, "pdb", "n", "line1"), row(1, "pdb", "n", "line2"), row(2, "pdb", "n", "line2"), row(3, "pdb", "n", "line2"), row(4, "view", "n", "line2")}
	Repeats(rows)
	var repeatOf []int32
	for _, r := range rows {
		if r.RepeatOf == nil {
			repeatOf = append(repeatOf, -1)
		} else {
			repeatOf = append(repeatOf, *r.RepeatOf)
		}
	}
	if diff := cmp.Diff([]int32{-1, -1, 1, 1, -1}, repeatOf); diff != "" {
		t.Error(diff)
	}
	var e schemas.EpisodeRow
	Behaviour(&e, rows)
	if *e.NRepeats != 2 || *e.MaxRepeatRun != 2 || *e.LoopScore != 0.4 || *e.NPDB != 4 || e.NTurns != 5 || e.NBacktracks != nil {
		t.Errorf("%+v", e)
	}
}

func TestAnotherPassOfALoopIsNotARepeat(t *testing.T) {
	row := func(tool, arguments, breakpoints string) schemas.StepRow {
		return schemas.StepRow{ToolName: &tool, ArgumentsJSON: &arguments, ObservationSHA256: new("1"), BreakpointsJSON: &breakpoints}
	}
	rows := []schemas.StepRow{
		row("pdb", "c", `[{"hits":1}]`), row("pdb", "c", `[{"hits":2}]`), row("pdb", "c", `[{"hits":2}]`),
		row("view", "m.py", `[{"hits":1}]`), row("view", "m.py", `[{"hits":2}]`), row("view", "n.py", `[{"hits":2}]`),
	}
	Repeats(rows)
	var got []bool
	for _, r := range rows {
		got = append(got, r.RepeatOf != nil)
	}
	if want := []bool{false, false, true, false, true, false}; !cmp.Equal(got, want) {
		t.Errorf("repeats: %v, want %v", got, want)
	}
}

// A call that did not reach its tool does not count as use of the debugger, test run or change.
func TestRefusedCallsDoNotCount(t *testing.T) {
	row := func(i int32, tool, kind, class string) schemas.StepRow {
		return schemas.StepRow{
			StepIndex: i, TurnIndex: &i, Source: "agent", ToolName: &tool, ToolCategory: new(Category(tool)), ActionKind: kind, IsError: new(true), ErrorClass: &class,
		}
	}
	base, final := "tree0", "tree1"
	for _, class := range []string{schemas.ErrUnknownTool, schemas.ErrNotExecuted, schemas.ErrBadArguments, schemas.ErrCutOff} {
		rows := []schemas.StepRow{row(0, "pdb", SeekDynamic, class), row(1, "eval", Verify, class), row(2, "bash", Exec, class), row(3, "bash", Exec, schemas.ErrNonzeroExit)}
		var e schemas.EpisodeRow
		Behaviour(&e, rows)
		if *e.UsedDebugger || *e.NPDB != 0 || *e.NTestRuns != 0 || *e.NExploreBeforeEdit != 0 || *e.NToolCalls != 4 {
			t.Errorf("%s: debugger %t, %d test runs, %d exploring calls", class, *e.UsedDebugger, *e.NTestRuns, *e.NExploreBeforeEdit)
		}
		Workspaces(rows, &base, &final)
		for i, want := range []*string{&base, &base, &base, &final} {
			if got := rows[i].WorkspaceSHA256; got == nil || *got != *want {
				t.Errorf("%s: after step %d the workspace is %v, want %s", class, i, got, *want)
			}
		}
	}
	timeout := []schemas.StepRow{row(0, "pdb", SeekDynamic, schemas.ErrTimeout)}
	var e schemas.EpisodeRow
	if Behaviour(&e, timeout); !*e.UsedDebugger {
		t.Error("a call that timed out does not count as use of the debugger")
	}
}

// A reply without a call counts as a step, both in the window after a debugger call and in the
// length of the trajectory.
func TestCriteriaCountRepliesWithoutCall(t *testing.T) {
	rows := []schemas.StepRow{{Source: "system"}, {Source: "user"}, {Source: "agent", ToolName: new("pdb"), PDBCommand: new("n")}}
	for range window {
		rows = append(rows, schemas.StepRow{Source: "agent"})
	}
	rows = append(rows, schemas.StepRow{Source: "agent", ToolName: new("edit")})
	want := []string{"has_consecutive_pdb_calls", "has_minimum_trajectory_length", "has_rewrite_after_pdb", "has_sufficient_code_changes", "uses_specific_pdb_command(n)"}
	if diff := cmp.Diff(want, Criteria(rows, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestSplitTarget(t *testing.T) {
	for text, want := range map[string]struct {
		file        string
		first, last int64
	}{
		"a.py": {"a.py", 0, 0}, "a.py:3": {"a.py", 3, 3}, "a.py:3-9": {"a.py", 3, 9}, "a.py::f": {"a.py", 0, 0}, "a:b": {"a", 0, 0}, "a.py:3-x": {"a.py", 3, 3},
	} {
		file, first, last := splitTarget(text)
		if file != want.file || first != want.first || last != want.last {
			t.Errorf("%s: %s %d %d", text, file, first, last)
		}
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add([]byte(oneFile))
	f.Add([]byte("diff --git a/x b/x\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\n"))
	f.Fuzz(func(_ *testing.T, patch []byte) {
		if p, err := ParsePatch(patch); err == nil {
			_ = p.EditsTests()
			_ = p.Similarity(p)
		}
	})
}
