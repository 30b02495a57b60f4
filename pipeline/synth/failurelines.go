package synth

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// cutValue matches the places where unittest and pytest cut a value in the middle.
var cutValue = regexp.MustCompile(`\[\d+ chars\]|[^\s(x]\.\.\.[^\s)>]`)

// hidesValues reports whether an error cuts its values or shows two equal ones.
func hidesValues(line string) bool {
	_, values, _ := strings.Cut(line, ": ")
	left, right, _ := strings.Cut(strings.TrimPrefix(values, "assert "), " == ")
	if right == "" {
		left, right, _ = strings.Cut(values, " != ")
	}
	return cutValue.MatchString(line) || right != "" && left == right
}

// errorLine returns the first line of the exception. If an assertion cut or left out its values, the line has the whole
// values, or none if they are long.
func (f Failure) errorLine() string {
	line := firstLine(f.Text)
	if rest, ok := strings.CutPrefix(line, f.Type+": expected "); ok && f.asserts() {
		return "expected " + rest // of a doctest, which raises nothing
	}
	isBare := strings.TrimSuffix(line, ":") == f.Type && f.Scene != nil && f.Scene.Relation == relationEqual
	if !f.asserts() || !isBare && !hidesValues(line) {
		return line
	}
	kind, _, _ := strings.Cut(line, ":")
	what := map[string]string{"list": "different keys, "}[f.Part]
	if f.Part == "len" {
		return kind // a developer would not report the lengths
	}
	if values := what + f.Left + " != " + f.Right; f.Left != f.Right && utf8.RuneCountInString(values) <= maxValue-len(kind)-2 {
		return kind + ": " + values
	}
	return kind
}

// maxExcerpt is the size of the longest excerpt of a test, in lines.
const maxExcerpt = 12

// excerpt returns the lines of the test at which it fails; "" if they are unknown.
func (f Failure) excerpt() string {
	var out []string
	for i, line := range f.Lines {
		code := strings.TrimPrefix(line.Code, "return ")
		if strings.Contains(code, "\n") {
			if strings.Contains(code, `"""`) || strings.Contains(code, "'''") {
				return ""
			}
			whole := oneLine(code)
			if utf8.RuneCountInString(whole) > maxCall {
				whole = strings.ReplaceAll(strings.ReplaceAll(code, "\n", "\n    "), "\n    )", "\n)")
			}
			code = whole
		}
		switch {
		case i > 0: // of a helper
			code = "# in " + line.Function + ": " + strings.ReplaceAll(code, "\n", "\n# ")
		case len(f.Lines) == 1 && len(f.Values) > 0:
			code += "\n# where " + strings.Join(f.Values, ", ")
		}
		out = append(out, code)
	}
	if len(f.Lines) > 1 && len(f.Values) > 0 {
		out = append(out, "# "+strings.Join(f.Values, ", "))
	}
	if text := strings.Join(out, "\n"); strings.Count(text, "\n") < maxExcerpt && !strings.Contains(text, "`") {
		return text
	}
	return ""
}
