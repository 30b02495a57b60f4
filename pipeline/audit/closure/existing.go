package closure

import (
	"encoding/json"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// existing tells what exists in the repository from what the agent makes up, such as a name in an example, if the
// repository is not at hand: in imports. Only answers of calls that read the repository tell, at any time of the episode.
type existing struct {
	read []string // lines that reading calls have shown
	own  string   // the agent's texts and arguments, normalized
}

func existingIn(episode *metrics.Episode) *existing {
	var x existing
	var own strings.Builder
	for _, row := range episode.Rows {
		if row.Source != "agent" {
			continue
		}
		addOwn(&own, row.Message)
		addOwn(&own, schemas.Value(row.Reasoning))
		var args any
		if row.ArgumentsJSON != nil && json.Unmarshal([]byte(*row.ArgumentsJSON), &args) == nil {
			addOwn(&own, args)
		}
		if row.Observation != nil && row.ActionKind == metrics.SeekStatic {
			x.read = append(x.read, strings.Split(*row.Observation, "\n")...)
		}
	}
	x.own = own.String()
	return &x
}

// addOwn adds the texts of an argument.
func addOwn(own *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			addOwn(own, element)
		}
	case []any:
		for _, element := range v {
			addOwn(own, element)
		}
	case string:
		own.WriteString(normalized(v) + " ")
	}
}

// normalized returns a text without escapes and quotes, and with single spaces: a shell command and the file that it
// writes differ in these.
func normalized(text string) string {
	text = strings.ReplaceAll(text, `\n`, " ")
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '\\' || r == '"' || r == '\'' {
			return -1
		}
		return r
	}, text)), " ")
}

// has reports whether a thing exists that a step names. Only names, files and tests exist: a number can be calculated, a
// line is a guess where to look, and how many places a fix changes is a plan.
func (x *existing) has(e Entity, k *known) bool {
	switch e.Kind {
	case Identifier:
		if k.occurs(e.Text, true) {
			return false // a part of a name that was shown
		}
	case File, Test:
		if name, isModule := strings.CutSuffix(baseName(e.Text), ".py"); isModule && k.hasWord(name) {
			return false // a module that was shown
		}
	default:
		return false
	}
	for _, line := range x.read {
		if strings.Contains(line, e.Text) && containsWord([]string{line}, e.Text, false) && !x.isOwn(line, e.Text) {
			return true
		}
	}
	return false
}

// isOwn reports whether the agent has written a line that contains a name, or whether the line says that something does
// not exist.
func (x *existing) isOwn(line, name string) bool {
	if strings.Contains(line, "No such file or directory") {
		return true
	}
	text := normalized(line)
	for range prefixes + 1 {
		if len(text) <= len(name)+len("()") || !strings.Contains(text, name) {
			return false // only the name, as in a list of files
		}
		if strings.Contains(x.own, text) {
			return true
		}
		end := strings.IndexAny(text, ":-+| ")
		if end < 0 {
			return false
		}
		text = strings.TrimSpace(text[end+1:])
	}
	return false
}

// prefixes is the number of words that a tool may print before a line of a file: its path, number and mark.
const prefixes = 3
