package cli

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/tools"
)

const modulePath = "github.com/tracesmith/tracesmith/"

// setting is one row of a table of settings.
type setting struct{ key, kind, value, meaning string }

const settingHead = "| Setting | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"

// settingTable renders settings as a Markdown table.
func settingTable(list []setting) string {
	b := strings.Builder{}
	b.WriteString(settingHead)
	for _, s := range list {
		value := s.value
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.key, s.kind, value, strings.ReplaceAll(s.meaning, "|", "\\|"))
	}
	return b.String()
}

// settingPage returns the page about settings: first the sections of a configuration, then the
// settings of components.
func settingPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Settings\n\nA configuration is YAML: sections with settings. " +
		"`tracesmith help config` says where settings come from, and which value wins.\n\n" +
		"A duration is a number with a unit, such as `90s`, `5m` or `1h30m`. A size is a number of bytes, or a number with a unit, such as `512MB` or `2GiB`. " +
		"Units of sizes are powers of 1024. A setting without a default is unset.\n\n")
	withServer, err := configs.Load(configs.Input{Sources: []configs.Source{{Name: "defaults", Data: []byte("mcp: {ID: {command: program}}\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	r := settingReader{t: t, tag: "mapstructure", comments: map[string]map[string]string{}}
	defaults := reflect.ValueOf(configs.Default())
	for f, v := range defaults.Fields() {
		name := f.Tag.Get("mapstructure")
		switch name {
		case "-", "models":
			continue
		case "mcp":
			server := withServer.MCP["ID"]
			server.Command = ""
			fmt.Fprintf(&b, "## mcp.ID\n\nEach block of section `mcp` is an MCP server. You choose its id.\n\n%s\n", settingTable(r.settings(reflect.ValueOf(server), "mcp.ID")))
		case "version":
			fmt.Fprintf(&b, "## version\n\n%s\n", settingTable([]setting{r.setting(reflect.TypeFor[configs.Config](), f, v, name)}))
		default:
			fmt.Fprintf(&b, "## %s\n\n%s\n", name, settingTable(r.field(reflect.TypeFor[configs.Config](), f, v, name)))
		}
		if name == "llm" {
			b.WriteString("## models.NAME\n\nEach block of section `models` is one more model, with the settings of section `llm`. Its name can be used in `llm.model` and in the settings of agents.\n\n")
		}
	}
	r.tag = "json"
	writeComponents(&b, r, env.Sources, "tasks.with", "`tasks.source` chooses a task source, and `tasks.with` holds its settings.")
	writeComponents(&b, r, env.Drivers, "sandbox.with", "`sandbox.kind` chooses a sandbox, and `sandbox.with` holds its settings.")
	writeComponents(&b, r, agents.Registry, "agent.with", "`agent.kind` chooses an agent, and `agent.with` holds its settings.")
	writeComponents(&b, r, tools.Registry, "agent.tools", "Each item of `agent.tools` is the name of a tool, or a name with settings: `{bash: {timeout: 120}}`.")
	writeComponents(&b, r, llms.Providers, "llm.with", "`llm.provider` chooses an API, and `llm.with` holds its settings. The settings of section `llm` are not repeated here.")
	b.WriteString("Settings of views are in [views](views.md).\n")
	return b.String()
}

// writeComponents writes a section with the settings of each kind in a registry.
func writeComponents[C, D any](b *strings.Builder, r settingReader, registry *plugin.Registry[C, D], block, about string) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n", block, about)
	for _, kind := range registry.Kinds() {
		spec, _ := registry.Lookup(kind)
		fmt.Fprintf(b, "### %s\n\n%s.\n\n", kind, capital(spec.Summary))
		if spec.Default == nil {
			continue
		}
		if list := r.settings(reflect.ValueOf(spec.Default()).Elem(), ""); len(list) > 0 {
			b.WriteString(settingTable(list) + "\n")
		}
	}
}

// capital returns s with its first letter in upper case.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// settingReader derives settings from structs: the key from a tag, the default from the
// value, and the meaning from the comment in the source.
type settingReader struct {
	t        *testing.T
	tag      string
	comments map[string]map[string]string // comments of fields, by the type's path and name, then by field
}

// settings returns the settings of a struct, including those of embedded structs.
func (r settingReader) settings(v reflect.Value, path string) (list []setting) {
	for f, field := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get(r.tag), ",")
		switch {
		case f.Anonymous && f.Name == "Endpoint": // section llm fills it
		case f.Anonymous:
			list = append(list, r.settings(field, path)...)
		case name == "" || name == "-":
		default:
			list = append(list, r.field(v.Type(), f, field, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return list
}

// field returns the setting of a field, or the settings of the struct that the field holds.
func (r settingReader) field(owner reflect.Type, f reflect.StructField, v reflect.Value, key string) []setting {
	inner := f.Type
	if inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct {
		return r.settings(reflect.Zero(inner.Elem()), key)
	}
	if inner.Kind() == reflect.Struct && !decodesItself(inner) {
		return r.settings(v, key)
	}
	if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct && !decodesItself(inner.Elem()) {
		return r.settings(reflect.Zero(inner.Elem()), key+"[]")
	}
	return []setting{r.setting(owner, f, v, key)}
}

// decodesItself reports whether a type decodes itself from text or JSON.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func (r settingReader) setting(owner reflect.Type, f reflect.StructField, v reflect.Value, key string) setting {
	meaning := r.comment(owner, f.Name)
	if meaning == "" {
		r.t.Errorf("%s.%s (%s) has no comment, which would be its meaning", owner, f.Name, key)
	}
	return setting{key, typeName(f.Type), defaultText(v), meaning}
}

// typeName returns the name of a Go type in the table.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration](), t.Name() == "seconds":
		return "duration"
	case t == reflect.TypeFor[configs.ByteSize]():
		return "size"
	case t == reflect.TypeFor[[]configs.Tool]():
		return "list of tools"
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return "block"
	case decodesItself(t):
		return "text or list"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "block of " + typeName(t.Elem())
	}
	return t.String()
}

// defaultText returns a default as YAML; "" if the setting has no default.
func defaultText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return shortDuration(x)
	case configs.ByteSize:
		if x > 0 && x%(1<<30) == 0 {
			return strconv.Itoa(int(x>>30)) + "GiB"
		}
	case []configs.Tool:
		var names []string
		for _, tool := range x {
			names = append(names, tool.Name)
		}
		return "[" + strings.Join(names, ", ") + "]"
	case []string:
		if len(x) > 0 {
			return "[" + strings.Join(x, ", ") + "]"
		}
		return ""
	}
	if v.Type().Name() == "seconds" {
		return shortDuration(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return fmt.Sprint(v.Interface())
	case reflect.Pointer:
		if !v.IsNil() {
			return defaultText(v.Elem())
		}
	}
	return ""
}

// shortDuration formats a duration without trailing zeros: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// comment returns the comment of a field in the source, as one sentence.
func (r settingReader) comment(owner reflect.Type, field string) string {
	key := owner.PkgPath() + "." + owner.Name()
	if r.comments[key] == nil {
		r.comments[key] = fieldComments(r.t, owner)
	}
	text := r.comments[key][field]
	for _, opening := range []string{" is ", " are "} {
		text = strings.TrimPrefix(text, field+opening)
	}
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(capital(text), ".") + "."
}

// fieldComments reads the comments of the fields of a struct, both above a field and at the end of its line.
func fieldComments(t *testing.T, owner reflect.Type) map[string]string {
	dir := filepath.Join(repository, strings.TrimPrefix(owner.PkgPath(), modulePath))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the source of %s: %v", owner, err)
	}
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != owner.Name() {
				return true
			}
			block, ok := spec.Type.(*ast.StructType)
			for i := 0; ok && i < len(block.Fields.List); i++ {
				f := block.Fields.List[i]
				for _, name := range f.Names {
					found[name.Name] = strings.Join(slices.Concat(strings.Fields(f.Doc.Text()), strings.Fields(f.Comment.Text())), " ")
				}
			}
			return false
		})
	}
	return found
}
