package views

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

// textTemplate renders messages as text. It renders each message separately, so that the
// rendered prompt is always the beginning of the rendered prompt and completion.
type textTemplate struct {
	name, sha256 string
	tmpl         *template.Template
}

func templateNames() []string {
	files, err := fs.Glob(templateFiles, "templates/*.tmpl")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(files[i], "templates/"), ".tmpl")
	}
	return files
}

func newTextTemplate(name string) (*textTemplate, error) {
	if !slices.Contains(templateNames(), name) {
		return nil, fmt.Errorf("template %q: choose one of %s", name, strings.Join(templateNames(), ", "))
	}
	body, err := templateFiles.ReadFile("templates/" + name + ".tmpl")
	if err != nil {
		return nil, err
	}
	tmpl, err := template.New(name).Funcs(template.FuncMap{"json": jsonText}).Parse(string(body))
	return &textTemplate{name, schemas.HashBytes(body), tmpl}, err
}

type templateCall struct {
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters []parameter     `json:"-"`
}

type parameter struct{ Name, Value string }

func (t *textTemplate) execute(part string, data any) (string, error) {
	var b strings.Builder
	if err := t.tmpl.ExecuteTemplate(&b, part, data); err != nil {
		return "", fmt.Errorf("template %s: %w", t.name, err)
	}
	return b.String(), nil
}

// render renders messages one after the other. Consecutive answers of tools are one part.
// replies[i] holds the byte offsets of the start, after the generation prompt, and of the end
// of the i-th reply.
func (t *textTemplate) render(list []message, tools []tool) (whole string, replies [][2]int, err error) {
	var b strings.Builder
	add := func(part string, data any) {
		if err == nil {
			var s string
			s, err = t.execute(part, data)
			b.WriteString(s)
		}
	}
	if len(tools) > 0 && (len(list) == 0 || list[0].Role != "system") {
		list = slices.Insert(slices.Clone(list), 0, message{Role: "system"})
	}
	for i := 0; i < len(list); i++ {
		m := list[i]
		switch m.Role {
		case "system":
			add("system", map[string]any{"Content": m.Content, "Tools": tools})
			tools = nil
		case "user":
			add("user", m)
		case "tool":
			answers := []string{m.Content}
			for ; i+1 < len(list) && list[i+1].Role == "tool"; i++ {
				answers = append(answers, list[i+1].Content)
			}
			add("tool", map[string]any{"Answers": answers})
		case "assistant":
			add("generate", nil)
			begin := b.Len()
			add("assistant", map[string]any{"Content": m.Content, "Calls": templateCalls(m.ToolCalls)})
			replies = append(replies, [2]int{begin, b.Len()})
		}
	}
	return b.String(), replies, err
}

// templateCalls converts calls for templates. A parameter whose value is a text that cannot
// be mistaken for JSON is the text itself. Every other parameter is JSON.
func templateCalls(calls []call) []templateCall {
	var out []templateCall
	for _, c := range calls {
		call := templateCall{Name: c.Function.Name, Arguments: c.Function.Arguments}
		dec := json.NewDecoder(bytes.NewReader(c.Function.Arguments))
		_, _ = dec.Token() // callOf has checked that it is an object
		for dec.More() {
			name, _ := dec.Token()
			var value json.RawMessage
			_ = dec.Decode(&value)
			call.Parameters = append(call.Parameters, parameter{name.(string), plainText(value)})
		}
		out = append(out, call)
	}
	return out
}

// plainText returns the text of a JSON string, unless the text is valid JSON or contains
// </parameter>. Other values stay JSON.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil || string(raw) == "null" || json.Valid([]byte(s)) || strings.Contains(s, "</parameter>") {
		return strings.ReplaceAll(string(raw), "</", `<\/`)
	}
	return s
}

func (v *renderer) withTemplate(name string) (sinks.View, error) {
	var err error
	v.template, err = newTextTemplate(name)
	return v, err
}
