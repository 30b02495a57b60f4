package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// A turn with `template: true` is worded from its request (text/template), so
// that an agent can be steered through what its tools really print.

// scene is what a template sees of the request.
type scene struct {
	Session, Model string
	Turn           int
	System, User   string // the system prompt, the first message of the user
	Last           string // the last message: an observation, or the user's
	Messages       []said
}

// said is one message as plain text.
type said struct{ Role, Text, ID string }

func newScene(ex Exchange, messages []said) scene {
	s := scene{Session: ex.SessionID, Model: ex.Model, Turn: ex.Turn, Messages: messages}
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
			return "", fmt.Errorf("%q stands nowhere in %q", pattern, clip(text))
		}
		return m[min(1, len(m)-1)], nil
	},
	"has":   func(pattern, text string) (bool, error) { return regexp.MatchString(pattern, text) },
	"quote": func(text string) (string, error) { raw, err := json.Marshal(text); return string(raw), err },
	"line": func(n int, text string) (string, error) {
		lines := strings.Split(text, "\n")
		if n < 0 {
			n += len(lines)
		}
		if n < 0 || n >= len(lines) {
			return "", fmt.Errorf("there is no line %d: the text has %d", n, len(lines))
		}
		return lines[n], nil
	},
}

// clip is the start of a text, on one line.
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

// maxWorded bounds what one template makes.
const maxWorded = 8 << 20

type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxWorded {
		return 0, errors.New("a template makes more than 8 MiB")
	}
	return b.Builder.Write(p)
}

// worded is the turn with its templates carried out; each is called for every
// text of it.
func (t Turn) worded(each func(string) (string, error)) (Turn, error) {
	var failed error
	word := func(text string) string {
		out, err := each(text)
		if err != nil && failed == nil {
			failed = err
		}
		return out
	}
	pointed := func(text *string) *string {
		if text == nil {
			return nil
		}
		out := word(*text)
		return &out
	}
	t.Content, t.Reasoning = pointed(t.Content), word(t.Reasoning)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, c := range t.ToolCalls {
		c.Name, c.ID, c.Raw = word(c.Name), pointed(c.ID), pointed(c.Raw)
		c.Arguments, _ = wordedValue(c.Arguments, word).(map[string]any)
		c.Object, _ = wordedValue(c.Object, word).(map[string]any)
		t.ToolCalls[i] = c
	}
	return t, failed
}

func wordedValue(v any, word func(string) string) any {
	switch v := v.(type) {
	case string:
		return word(v)
	case map[string]any:
		out := maps.Clone(v)
		for k, inner := range out {
			out[k] = wordedValue(inner, word)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i, inner := range out {
			out[i] = wordedValue(inner, word)
		}
		return out
	}
	return v
}

// fill carries a turn's templates out.
func (t Turn) fill(s scene) (Turn, error) {
	return t.worded(func(text string) (string, error) {
		if !strings.Contains(text, "{{") {
			return text, nil
		}
		tmpl, err := parseTemplate(text)
		if err != nil {
			return "", err
		}
		var out bounded
		if err := tmpl.Execute(&out, s); err != nil {
			return "", errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
		return out.String(), nil
	})
}
