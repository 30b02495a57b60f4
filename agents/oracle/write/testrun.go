package write

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// Failure is a failing test, as the last run of the tests has shown it.
type Failure struct {
	ID       string   // as the test runner names it; of unittest, the dotted name
	At       Place    // the line of the test that fails; Line 0 = unknown, File "" = unknown
	Message  string   // the error as one line, "" = unknown or not quotable
	Frames   []Place  // the traceback, the innermost frame last
	report   string   // what the test runner says about the test
	symptoms []string // its error message, by line
}

var (
	failedCount = regexp.MustCompile(`^The tests do not pass\. \d+ passed, (\d+) failed\.`)
	failedID    = regexp.MustCompile(`(?m)^  (\S.*) \((?:failed|error)\)$`)
	pytestHead  = regexp.MustCompile(`(?m)^_+ ([^\s_].*?|_\w.*?) _+$`)
	pytestFrame = regexp.MustCompile(`(?m)^([\w./-]+\.py):(\d+): `)
	errorLine   = regexp.MustCompile(`(?m)^E\s+(\S.*)$`)

	unittestHead  = regexp.MustCompile(`^(?:FAIL|ERROR): (\w+ \([\w.]+\))`)
	unittestFrame = regexp.MustCompile(`(?m)^  File "([^"\n]+\.py)", line (\d+), in (\w+)`)
	unittestError = regexp.MustCompile(`(?m)^([A-Za-z_][\w.]*(?:: .*)?)$`)
)

// readFailures reads the failing tests from the output of a test run. workdir is the directory of the repository.
func readFailures(text, workdir string) []Failure {
	var out []Failure
	find := func(id string) *Failure {
		for i := range out {
			if out[i].ID == id || strings.HasSuffix(out[i].ID, "."+id) {
				return &out[i]
			}
		}
		out = append(out, Failure{ID: id})
		return &out[len(out)-1]
	}
	for _, m := range failedID.FindAllStringSubmatch(text, -1) {
		f := find(testcmd.Dotted(m[1]))
		if file, _, ok := strings.Cut(m[1], "::"); ok {
			f.At.File = file
		}
	}
	known := len(out) > 0
	for _, block := range strings.Split(text, "\n"+strings.Repeat("=", 70)+"\n")[1:] {
		if m := unittestHead.FindStringSubmatch(block); m != nil {
			if id := testcmd.Dotted(m[1]); !isAcross(block) && (!known || find(id).report == "") {
				find(id).readUnittest(block, workdir)
			}
		}
	}
	heads := pytestHead.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := text[h[2]:h[3]]
		if isAcross(text[h[0]:end]) {
			continue
		}
		for j := range out {
			if head := headOf(out[j].ID); head != "" && (name == head || strings.HasPrefix(name, head+" (")) && out[j].report == "" {
				out[j].readPytest(text[h[0]:end], workdir)
				break
			}
		}
	}
	for i := range out { // the test may be inherited from a class in another file
		if f := &out[i]; f.At.Line == 0 {
			if at := slices.IndexFunc(f.Frames, func(p Place) bool { return testcmd.IsTestFile(p.File) }); at >= 0 {
				f.At = f.Frames[at]
			}
		}
	}
	return out
}

// headOf returns the head of the report about a test of pytest, Class.test_name[parameters], or "". The report about a subtest has its
// parameters in parentheses behind that.
func headOf(id string) string {
	_, rest, _ := strings.Cut(id, "::")
	names, parameters, ok := strings.Cut(rest, "[")
	if names = strings.ReplaceAll(names, "::", "."); ok {
		return names + "[" + parameters
	}
	return names
}

// readPytest reads what pytest reports about the test. Pytest prints absolute paths if its root is another directory.
func (f *Failure) readPytest(report, workdir string) {
	f.report = report
	for _, m := range pytestFrame.FindAllStringSubmatch(report, -1) {
		n, _ := strconv.Atoi(m[2]) // the pattern ensures digits
		at := Place{strings.TrimPrefix(m[1], workdir+"/"), n}
		f.Frames = append(f.Frames, at)
		if at.File == f.At.File && f.At.Line == 0 {
			f.At.Line = n
		}
	}
	for _, m := range errorLine.FindAllStringSubmatch(report, -1) {
		f.symptoms = append(f.symptoms, strings.Join(strings.Fields(m[1]), " "))
	}
	if m := errorLine.FindStringSubmatch(lastError(report)); m != nil && quotable(m[1]) {
		f.Message = strings.TrimSpace(m[1])
	}
}

// isAcross reports whether lines were cut from the middle of a report, so that its end may belong to another test.
func isAcross(report string) bool { return cutLine.MatchString(report) }

var cutLine = regexp.MustCompile(`(?m)^\[\.\.\. \d+ of \d+ bytes cut here`)

// lastError returns the part of a report after the errors that led to the one that ends the test.
func lastError(report string) string {
	for _, head := range []string{"During handling of the above exception, another exception occurred:", "The above exception was the direct cause of the following exception:"} {
		report = report[max(0, strings.LastIndex(report, "\n"+head)):]
	}
	return report
}

// readUnittest reads what unittest reports about the test.
func (f *Failure) readUnittest(report, workdir string) {
	f.report = report
	for _, m := range unittestFrame.FindAllStringSubmatch(report, -1) {
		file, inside := strings.CutPrefix(m[1], workdir+"/")
		if !inside {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		at := Place{path.Clean(file), n}
		f.Frames = append(f.Frames, at)
		if m[3] == testcmd.Function(f.ID) || f.At.File == "" && testcmd.IsTestFile(at.File) {
			f.At = at
		}
	}
	_, trace, _ := strings.Cut(lastError(report), "\nTraceback ")
	if m := unittestError.FindStringSubmatchIndex(trace); m != nil {
		if line := trace[m[2]:m[3]]; quotable(line) {
			f.Message = line
		}
		for line := range strings.Lines(trace[m[2]:]) {
			f.symptoms = append(f.symptoms, strings.Join(strings.Fields(line), " "))
		}
	}
}

// quotable reports whether a message can quote a line of output in backquotes.
func quotable(line string) bool { return len(line) <= 160 && !strings.Contains(line, "`") }

// runAlone returns the option to run one test whose report the output of all tests does not show, because it is too long.
func (n *Notes) runAlone(f Failure) []Option {
	command := testcmd.One(n.command, f.ID, !n.noSelect)
	if f.report != "" || command == "" || !slices.Contains(n.tools, "bash") {
		return nil
	}
	m := say(fmt.Sprintf("`%s` fails.", f.ID), schemas.Claim{Kind: schemas.ClaimFails, Test: f.ID}).then(
		say(n.words("The output does not show how, so I run only this test.", "Its report is not in this output. I run it alone.")))
	return []Option{{Kind: RunAlone, Test: f.ID, Place: f.At, say: m, call: schemas.NewToolCall("bash", map[string]any{"command": command})}}
}

// readAlone reads the output of the followed test, which was run alone.
func (n *Notes) readAlone(s schemas.Step) {
	if n.Test == nil || argument(s, "command") != testcmd.One(n.command, n.Test.ID, !n.noSelect) {
		return
	}
	text := s.Observation.Text
	if h := pytestHead.FindStringIndex(text); h != nil {
		report, _, _ := strings.Cut(text[h[0]:], "\n=====")
		n.Test.readPytest(report, n.workdir)
	} else if _, report, ok := strings.Cut(text, "\n"+strings.Repeat("=", 70)+"\n"); ok {
		n.Test.readUnittest(report, n.workdir)
	}
}
