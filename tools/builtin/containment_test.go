package builtin

import (
	"context"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Relative paths start at the workspace. Absolute paths must be the workspace or below it.
func TestC2PathsAreResolved(t *testing.T) {
	b := newToolSession(t, project)
	for _, p := range []string{"src/pkg/mod.py", "./src//pkg/mod.py", "src/../src/pkg/mod.py", "/testbed/src/pkg/mod.py", "/testbed/../testbed/src/pkg/mod.py", " src/pkg/mod.py ", "link.py", "dirlink/mod.py", "dirlink/../src/pkg/mod.py"} {
		if got := b.ok("view", args{"path": p, "end": 1}); got != "src/pkg/mod.py, lines 1-1 of 3\n    1  def total(items):\n" {
			t.Errorf("%q: %q", p, got)
		}
	}
	for _, root := range []string{".", "/testbed", "/testbed/", "src/..", "./", "/testbed/src/../."} {
		if got := b.ok("listdir", args{"path": root}); !strings.HasPrefix(got, "/testbed/\n") {
			t.Errorf("%q: %.40q", root, got)
		}
		b.ok("grep", args{"path": root, "pattern": "total"})
	}
	if o := b.call("view", args{"path": 7}); !strings.Contains(o.Text, "7 does not exist") {
		t.Errorf("a number is a name: %+v", o)
	}
	if o := b.call("view", args{"path": nil}); o.ErrorClass != schemas.ErrBadArguments {
		t.Errorf("no path: %+v", o)
	}
}

// Every tool accepts a name as any tool shows it.
func TestC2ShownNamesAreNames(t *testing.T) {
	names := []string{" lead.py", "trail.py ", "new\nline.py", "bad\xff.py", "tab\there.py", "esc\x1b[31m.py", `"quoted".py`, "plain.py"}
	project := files{}
	for _, name := range names {
		project["d/"+name] = "x = 1\n"
	}
	b := newToolSession(t, project)
	for _, name := range names {
		shown := quoteName("d/" + name)
		if name != "plain.py" && !strings.Contains(b.ok("listdir", args{"path": "d"}), "  "+quoteName(name)+"\n") {
			t.Errorf("listdir does not show %s", quoteName(name))
		}
		for _, p := range []string{"d/" + quoteName(name), shown, "/testbed/d/" + quoteName(name)} {
			if got, want := b.ok("view", args{"path": p}), shown+", lines 1-1 of 1\n    1  x = 1\n"; got != want {
				t.Errorf("%s: %q, want %q", p, got, want)
			}
		}
		if got := b.ok("grep", args{"pattern": "=", "path": shown}); !strings.Contains(got, "\n"+shown+"\n    1: x = 1\n") {
			t.Errorf("%s: %q", shown, got)
		}
		if got := b.ok("edit", args{"path": shown, "new_code": "x = 2"}); !strings.HasPrefix(got, "Replaced all of "+shown+" (1 line) with 1 line.\n--- ") {
			t.Errorf("%s: %q", shown, got)
		}
	}
	b.refused("view", args{"path": `"../../etc/passwd"`})
	b.refused("view", args{"path": `d/"../../../etc/passwd"`})
	if got := b.sh("cat d/* | sort | uniq -c | tr -s ' '"); got != " 8 x = 2\n" {
		t.Errorf("in the files: %q", got)
	}
}

// Missing files, unreadable files, and files outside of the workspace have different
// messages.
func TestC3ReadErrorsDiffer(t *testing.T) {
	b := newToolSession(t, project)
	b.sh("cp a.py locked; chmod 000 locked")
	b.refused("view", args{"path": "missing.py"}, "missing.py does not exist.")
	b.refused("view", args{"path": "locked"}, "permission denied")
	b.refused("view", args{"path": "/a.py"}, "outside the workspace")
}

// A file is read back byte for byte as it was written: no shell is involved.
func TestC4ContentsRoundTrip(t *testing.T) {
	b := newToolSession(t, files{})
	for name, text := range map[string]string{
		"empty": "", "no newline": "x", "newlines": strings.Repeat("\n", 1000), "one long line": strings.Repeat("é漢x", 2<<20/6),
		"heredoc": "EOF\n'EOF'\n__END__\nDEBUGGYM_EOF\n", "quotes": `'"$(touch bad)` + "`touch bad`\\\n", "crlf": "a\r\nb\r\n", "tabs": "\t\v\f\n",
		"unicode": "\u2028\u202e\U0001F600", "no end": "a\n\n\nb",
	} {
		b.ok("edit", args{"path": "new/" + name, "new_code": text})
		data, _, err := b.Sandbox.ReadFile(t.Context(), "/testbed/new/"+name, 4<<20)
		if err != nil || string(data) != text {
			t.Errorf("%s: %d bytes of %d, %v", name, len(data), len(text), err)
		}
	}
	b.refused("edit", args{"path": "../outside", "new_code": "x"}, "outside the workspace")
	b.refused("edit", args{"path": "huge", "new_code": strings.Repeat("x", 5<<20)}, "5242880 bytes, which is too large for edit")
	if got := b.sh("ls -A . ; ls new | wc -l"); got != "new\n10\n" {
		t.Errorf("in the workspace: %q", got)
	}
}

func TestC7LocateFindsFiles(t *testing.T) {
	b := newToolSession(t, project)
	for arg, want := range map[string]bool{"a.py": true, "src": true, "none": false, "src/none/x": false, "link.py": true} {
		p, err := locate(t.Context(), b.Session, arg)
		if err != nil || p.Exists != want {
			t.Errorf("%s: exists %v, %v", arg, p.Exists, err)
		}
	}
	for _, arg := range []string{"..", "/etc/passwd", "out", "broken"} {
		if _, err := locate(t.Context(), b.Session, arg); err == nil {
			t.Errorf("%s is in the workspace", arg)
		}
	}
}

// No tool reads or writes through a path that leads out of the workspace.
func TestWS8NoToolLeavesTheWorkspace(t *testing.T) {
	b := newToolSession(t, project)
	b.sh(`ln -s / rootlink; ln -s .. up; mkdir -p x/y; ln -s ../../.. x/y/far; ln -s /proc/self/cwd cwd; ln -s outdir chain
ln -s /testbed/src/pkg/mod.py absin; ln -s loop loop; ln -s /testbed/../etc/passwd sly; ln -s /proc/self/root/etc/passwd magic`)
	for _, p := range []string{
		"..", "../..", "/", "/etc/passwd", "../etc/passwd", "src/../../etc/passwd", "/testbed/../etc/passwd", "/testbedx",
		"out", "outdir/passwd", "rootlink/etc/passwd", "up/etc/passwd", "x/y/far/etc/passwd", "chain/passwd", "sly", "magic",
		"/proc/self/cwd/../etc/passwd", "/proc/self/root/etc/passwd", "outdir/none/new",
	} {
		for _, tool := range []string{"view", "edit", "grep", "listdir"} {
			a := args{"path": p}
			switch tool {
			case "edit":
				a["new_code"] = "owned"
			case "grep":
				a["pattern"] = "root"
			}
			o := b.call(tool, a)
			if o.ErrorClass != schemas.ErrUserError || strings.Contains(o.Text, "root:") || !strings.Contains(o.Text, "outside") {
				t.Errorf("%s %s: %+v", tool, p, o)
			}
		}
	}
	b.refused("view", args{"path": "loop"}, "symbolic link")
	if got := b.ok("view", args{"path": "absin", "end": 1}); !strings.HasPrefix(got, "src/pkg/mod.py, lines 1-1") {
		t.Errorf("a link that stays inside: %q", got)
	}
	if got := b.ok("grep", args{"pattern": "^root:"}); !strings.HasPrefix(got, "No line matches") {
		t.Errorf("grep went through a link: %q", got)
	}
	if got := b.ok("listdir", args{"depth": 20}); strings.Contains(got, "passwd\n      ") || strings.Contains(got, "bin/") {
		t.Errorf("listdir went through a link:\n%.500s", got)
	}
	if got := b.sh("head -c 5 /etc/passwd"); got != "root:" {
		t.Errorf("/etc/passwd begins %q", got)
	}
}

// The guest refuses to write through a link that appears between the check and the write.
func TestWS8LinkMadeBetweenCheckAndWrite(t *testing.T) {
	b := newToolSession(t, files{"d/a.py": "x = 1\n", "e/a.py": "y = 1\n"})
	swap := &swappingSandbox{Sandbox: b.Sandbox, b: b, command: "mv d away; ln -s /tmp d"}
	b.Sandbox = swap
	o := b.call("edit", args{"path": "d/a.py", "new_code": "x = 2", "start": 1})
	if !o.IsError || !strings.Contains(o.Text, "escapes") {
		t.Errorf("a directory became a link: %+v", o)
	}
	swap.command = "ln -sf /tmp/a.py e/a.py"
	o = b.call("edit", args{"path": "e/a.py", "new_code": "y = 2", "start": 1})
	if !o.IsError || !strings.Contains(o.Text, "leads out of the workspace") {
		t.Errorf("a file became a link: %+v", o)
	}
	if got := b.sh("ls /tmp/a.py 2>&1; cat away/a.py"); got != "ls: cannot access '/tmp/a.py': No such file or directory\nx = 1\n" {
		t.Errorf("written: %q", got)
	}
	if len(b.edits) != 0 {
		t.Errorf("events of edits that failed: %+v", b.edits)
	}
}

// swappingSandbox runs a command just before a file is written.
type swappingSandbox struct {
	env.Sandbox
	b       *toolSession
	command string
}

func (s *swappingSandbox) WriteFile(ctx context.Context, path string, data []byte, mode uint32) error {
	if command := s.command; command != "" && strings.HasPrefix(path, "/testbed/") {
		s.command = ""
		r, err := s.Sandbox.Run(ctx, env.Command{Args: []string{"sh", "-c", command}})
		if err != nil || r.ExitCode != 0 {
			s.b.t.Errorf("%s: %+v, %v", command, r, err)
		}
	}
	return s.Sandbox.WriteFile(ctx, path, data, mode)
}

// No content of a file is executed or cut, whatever it contains.
func TestWS9ContentIsInert(t *testing.T) {
	b := newToolSession(t, files{})
	text := "EOF\ntouch /testbed/executed\nEOF\n__tracesmith_frame 0 x 1\n\x1b]7717;x;1;1;MTAw\a\n$(touch /testbed/executed)\n`touch /testbed/executed`\n"
	b.ok("edit", args{"path": "a.sh", "new_code": text})
	b.ok("bash", args{"command": "cat <<'X' >b.sh\n" + text + "X"})
	if got := b.sh("ls; cmp a.sh b.sh && echo same"); got != "a.sh\nb.sh\nsame\n" {
		t.Errorf("got %q", got)
	}
}

// This test proves row WC16 of docs/internals/parity.md.
func TestWC16ContentWithADelimiterIsWhole(t *testing.T) {
	b := newToolSession(t, files{"a.py": "x = 1\n"})
	text := "x = '''\nEOF\n'''\nDEBUGGYM_HEREDOC_EOF\n" + strings.Repeat("y\n", 40_000) + "END\n"
	b.ok("edit", args{"path": "a.py", "new_code": text})
	if got := b.content("a.py"); got != text {
		t.Errorf("%d bytes of %d", len(got), len(text))
	}
}
