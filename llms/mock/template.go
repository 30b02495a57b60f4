package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

// The texts of a turn with `template: true` are executed as text/template with the
// request as data, so that an answer can depend on what the agent's tools printed.

// templateData is the data of a template: the request.
type templateData struct {
	Session, Model string
	Turn           int
	System, User   string // the first system message and the first user message
	Last           string // the last message, such as an observation
	Messages       []textMessage
}

type textMessage struct{ Role, Text, ID string }

func newTemplateData(ex Exchange, messages []textMessage) templateData {
	s := templateData{Session: ex.SessionID, Model: ex.Model, Turn: ex.Turn, Messages: messages}
	for _, m := range messages {
		if m.Role == "system" && s.System == "" {
			s.System = m.Text
		}
		if m.Role == "user" && s.User == "" {
			s.User = m.Text
		}
		s.Last = m.Text
	}
	return s
}

var templateFuncs = template.FuncMap{
	"capture": func(pattern, text string) (string, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return "", err
		}
		m := re.FindStringSubmatch(text)
		if m == nil {
			return "", fmt.Errorf("%q does not match %q", pattern, clip(text))
		}
		return m[min(1, len(m)-1)], nil // the first group, or else the whole match
	},
	"has":   func(pattern, text string) (bool, error) { return regexp.MatchString(pattern, text) },
	"quote": func(text string) (string, error) { raw, err := json.Marshal(text); return string(raw), err },
	"line": func(n int, text string) (string, error) {
		lines := strings.Split(text, "\n")
		if n < 0 {
			n += len(lines)
		}
		if n < 0 || n >= len(lines) {
			return "", fmt.Errorf("there is no line %d: the text has %d lines", n, len(lines))
		}
		return lines[n], nil
	},
}

// clip returns the first 200 characters of a text, on one line.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return text
}

func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New("turn").Option("missingkey=error").Funcs(templateFuncs).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	return t, nil
}

// maxText is the maximum number of bytes that one template may produce.
const maxText = 8 << 20

type limitedBuilder struct{ strings.Builder }

func (b *limitedBuilder) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxText {
		return 0, errors.New("a template produces more than 8 MiB")
	}
	return b.Builder.Write(p)
}

// expand returns a copy of the turn in which the function each has replaced every text, and
// the first error of each.
func (t Turn) expand(each func(string) (string, error)) (Turn, error) {
	var failed error
	replace := func(text string) string {
		out, err := each(text)
		if err != nil && failed == nil {
			failed = err
		}
		return out
	}
	replacePointer := func(text *string) *string {
		if text == nil {
			return nil
		}
		out := replace(*text)
		return &out
	}
	t.Content, t.Reasoning = replacePointer(t.Content), replace(t.Reasoning)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, c := range t.ToolCalls {
		c.Name, c.ID, c.Raw = replace(c.Name), replacePointer(c.ID), replacePointer(c.Raw)
		c.Arguments, _ = expandValue(c.Arguments, replace).(map[string]any)
		c.Object, _ = expandValue(c.Object, replace).(map[string]any)
		t.ToolCalls[i] = c
	}
	return t, failed
}

func expandValue(v any, replace func(string) string) any {
	switch v := v.(type) {
	case string:
		return replace(v)
	case map[string]any:
		out := maps.Clone(v)
		for k, inner := range out {
			out[k] = expandValue(inner, replace)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i, inner := range out {
			out[i] = expandValue(inner, replace)
		}
		return out
	}
	return v
}

// fill returns a copy of the turn with its templates executed.
func (t Turn) fill(data templateData) (Turn, error) {
	return t.expand(func(text string) (string, error) {
		if !strings.Contains(text, "{{") {
			return text, nil
		}
		tmpl, err := parseTemplate(text)
		if err != nil {
			return "", err
		}
		var out limitedBuilder
		if err := tmpl.Execute(&out, data); err != nil {
			return "", errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
		return out.String(), nil
	})
}
