package synth

import (
	"strings"
	"unicode/utf8"
)

// story is what one failure tells about the program, without the test around it.
type story struct {
	test   string // short name
	call   string // on one line, as code within a sentence; "" if there is none
	code   string // that shows the failure without the test; "" if it needs the test
	bare   string // code without its imports
	got    string // the value of call
	want   string // the expected value
	truth  string // "true" or "false": what call should be
	raised string // the exception that ended it, with its message
	waited string // the exception that should have been raised
	error  string // anything else that the assertion says
}

// Bounds of texts, in characters.
const (
	maxValue = 200 // a value or a message
	maxCall  = 120 // code within a sentence
	maxTitle = 100
)

// storyOf returns what a failure tells.
func storyOf(f Failure) story {
	s := story{test: shortName(f.Test)}
	scene := f.Scene
	if scene == nil {
		scene = &Scene{}
	}
	if line := strings.ReplaceAll(scene.Call, "\n", " "); utf8.RuneCountInString(line) <= maxCall && !strings.Contains(line, "`") && !strings.Contains(line, "self.") && !strings.HasPrefix(line, "return ") {
		s.call = line
	}
	if scene.Whole {
		s.bare = strings.Join(append(append([]string{}, scene.Before...), scene.Call), "\n")
		s.code = s.bare
		if len(scene.Imports) > 0 {
			s.code = strings.Join(scene.Imports, "\n") + "\n\n" + s.bare
		}
	}
	message := clip(firstLine(f.Message))
	switch {
	case scene.Relation == relationRaises && f.asserts() && strings.Contains(strings.ToLower(f.Message), "not raise"):
		s.waited = clip(scene.Raises)
	case !f.asserts():
		s.raised = strings.TrimSuffix(f.Type+": "+message, ": ")
		if scene.Relation == relationRaises {
			s.waited = clip(scene.Raises)
		} else {
			s.want = clip(scene.Want)
		}
	case scene.Relation == relationEqual && f.Left != f.Right:
		s.got, s.want = clip(f.Left), clip(f.Right)
		if scene.Swapped {
			s.got, s.want = s.want, s.got
		}
	case scene.Relation == relationEqual && scene.Want != "" && f.Left == "":
		s.want = clip(scene.Want)
	case scene.Relation == relationTrue || scene.Relation == relationFalse:
		s.truth = scene.Relation
	default:
		s.error = message
	}
	return s
}

// asserts reports whether a failure is that of an assertion of a test.
func (f Failure) asserts() bool {
	if f.Type != "AssertionError" && f.Type != "Failed" {
		return false
	}
	return len(f.Frames) == 0 || isTest(f.Frames[len(f.Frames)-1].File)
}

// told reports whether a story says enough for a text about the program's behavior.
func (s story) told() bool {
	return s.call != "" && (s.got != "" || s.truth != "" || s.raised != "" || s.waited != "" || s.want != "")
}

// verb joins a call with its value.
func (s story) verb() string {
	if strings.HasSuffix(s.call, ")") && !strings.HasPrefix(s.call, "(") {
		return "returns"
	}
	return "is"
}

// title returns a summary on one line.
func (s story) title() string {
	for _, t := range s.titles() {
		if utf8.RuneCountInString(t) <= maxTitle {
			return t
		}
	}
	return "`" + s.test + "` fails"
}

func (s story) titles() []string {
	call := "`" + s.call + "`"
	kind, _, _ := strings.Cut(s.raised, ":")
	switch {
	case s.waited != "" && s.raised != "":
		return []string{call + " raises `" + kind + "` instead of `" + s.waited + "`", "`" + kind + "` instead of `" + s.waited + "`"}
	case s.waited != "":
		return []string{call + " does not raise `" + s.waited + "`", "`" + s.waited + "` is not raised"}
	case s.raised != "":
		return []string{call + " fails with `" + s.raised + "`", call + " fails with `" + kind + "`", "Unexpected `" + kind + "`"}
	case s.truth != "":
		return []string{call + " should be " + s.truth, "A check that should be " + s.truth + " is not"}
	case s.got != "":
		return []string{call + " " + s.verb() + " `" + s.got + "` instead of `" + s.want + "`", "Wrong value of " + call, "Wrong value: `" + s.got + "` instead of `" + s.want + "`"}
	}
	return []string{call + " should be `" + s.want + "`"}
}

// expected returns a sentence about the expected value; "" if it is unknown.
func (s story) expected(p picker) string {
	if s.want == "" {
		return ""
	}
	return p.of("expected", "I expected `"+s.want+"`.", "The expected value is `"+s.want+"`.")
}

// outcome returns a sentence about the last line of the code.
func (s story) outcome(p picker) string {
	switch {
	case s.waited != "" && s.raised != "":
		return p.of("outcome", "It raises `"+s.raised+"`, but it should raise `"+s.waited+"`.", "I get `"+s.raised+"` instead of `"+s.waited+"`.")
	case s.waited != "":
		return p.of("outcome", "This should raise `"+s.waited+"`, but it runs without an error.", "I expected `"+s.waited+"` here, but no error is raised.",
			"No error. It should be `"+s.waited+"`.")
	case s.raised != "":
		said := p.of("outcome", "It fails with `"+s.raised+"`.", "The last line raises `"+s.raised+"`.", "This ends in `"+s.raised+"`.")
		return strings.TrimSpace(said + " " + s.expected(p))
	case s.truth != "":
		return p.of("outcome", "The last line should be "+s.truth+", but it is not.", "I expected this to be "+s.truth+", and it is not.", "The result should be "+s.truth+" here. It is not.")
	case s.got != "":
		return p.of("outcome", "I get `"+s.got+"`, but I expected `"+s.want+"`.", "Expected: `"+s.want+"`\nActual: `"+s.got+"`",
			"This gives `"+s.got+"`. It should be `"+s.want+"`.", "The last line "+s.verb()+" `"+s.got+"` instead of `"+s.want+"`.", "Got `"+s.got+"`, expected `"+s.want+"`.")
	}
	return "The result should be `" + s.want + "`, but it is not."
}

// brief returns the story in the words of a note.
func (s story) brief(p picker) string {
	call := "`" + s.call + "`"
	switch {
	case s.waited != "" && s.raised != "":
		return call + ": " + s.raised + ", should be " + s.waited
	case s.waited != "":
		return p.of("brief", call+" does not raise "+s.waited, call+" should raise "+s.waited)
	case s.raised != "":
		return p.of("brief", call+": "+s.raised, call+" raises "+s.raised)
	case s.truth != "":
		return call + " should be " + s.truth
	case s.got != "":
		return p.of("brief", call+": got `"+s.got+"`, want `"+s.want+"`", call+" gives `"+s.got+"`, should be `"+s.want+"`")
	}
	return call + " should be `" + s.want + "`"
}

// asks returns the story as a question on one line; "" if it makes none.
func (s story) asks(p picker) string {
	call := "`" + s.call + "`"
	kind, _, _ := strings.Cut(s.raised, ":")
	switch {
	case s.waited != "" && s.raised != "":
		return "Why does " + call + " raise `" + kind + "` and not `" + s.waited + "`?"
	case s.waited != "":
		return p.of("ask", "Shouldn't "+call+" raise `"+s.waited+"`?", "Why doesn't "+call+" raise `"+s.waited+"`?")
	case s.raised != "":
		return p.of("ask", "Why does "+call+" raise `"+kind+"`?", "Is "+call+" supposed to raise `"+kind+"`?", "`"+kind+"` from "+call+": is that expected?")
	case s.truth != "":
		return p.of("ask", "Shouldn't "+call+" be "+s.truth+"?", "Why isn't "+call+" "+s.truth+"?")
	case s.got != "" && s.verb() == "returns":
		return p.of("ask", "Why does "+call+" return `"+s.got+"`?", "Is "+call+" supposed to return `"+s.got+"`?", "Should "+call+" really return `"+s.got+"`?")
	case s.got != "":
		return p.of("ask", "Why is "+call+" `"+s.got+"`?", "Should "+call+" really be `"+s.got+"`?")
	}
	return "Shouldn't " + call + " be `" + s.want + "`?"
}

// shortName returns a test's name without its file and class.
func shortName(id string) string {
	name := id[strings.LastIndex(id, "::")+1:]
	name = strings.TrimPrefix(name, ":")
	if before, _, parameters := strings.Cut(name, "["); parameters {
		return before
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

func clip(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
	if utf8.RuneCountInString(text) <= maxValue {
		return text
	}
	return string([]rune(text)[:maxValue-1]) + "…"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
