package configs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// checkNode compares a YAML document with Config. It reports every unknown key and every
// scalar of the wrong type with file and line, because viper does not know positions. It
// also records in places where each setting was written, and in renamed a note for each
// value that has a new name.
func checkNode(s Source, root *yaml.Node, places Places, renamed *[]string) []error {
	c := checker{source: s, places: places, renamed: renamed}
	c.walk(root, reflect.TypeFor[Config](), "")
	return c.problems
}

// noSource is the error for an empty tasks.source.
const noSource = "tasks.source is empty: name a source of tasks, such as builtin, dir or file, or leave the setting out for the built-in tasks"

// removed maps settings of earlier versions to instructions for the user.
var removed = map[string]string{
	"sandbox.warm": "delete it; sandboxes start when they are needed",
}

// renames maps the values of a setting in earlier versions to their new names, by the path of
// the setting.
var renames = map[string]map[string]string{
	"agent.kind": {"null": "noop"},
}

// removedValues maps values of a setting in earlier versions to instructions for the user, by the path of the setting.
var removedValues = map[string]map[string]string{
	"agent.kind": {"demonstrator": "use oracle, which also debugs without a model"},
}

type checker struct {
	source   Source
	places   Places
	renamed  *[]string
	problems []error
}

func (c *checker) report(n *yaml.Node, format string, a ...any) {
	c.problems = append(c.problems, fmt.Errorf("%s: %s", c.source.place(n.Line), fmt.Sprintf(format, a...)))
}

func (c *checker) walk(n *yaml.Node, t reflect.Type, path string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t == reflect.TypeFor[Tool]() {
		c.checkTool(n, path)
		return
	}
	if newName := renames[path][n.Value]; newName != "" {
		if message := fmt.Sprintf("%s: %s is called %s now", path, n.Value, newName); !slices.Contains(*c.renamed, message) {
			*c.renamed = append(*c.renamed, message)
		}
		n.Tag, n.Value, n.Style = "!!str", newName, 0
	}
	if remedy := removedValues[path][n.Value]; remedy != "" {
		c.report(n, "%s %s was removed: %s", path, n.Value, remedy)
		return
	}
	if n.Tag == "!!null" {
		if path == "tasks.source" { // otherwise an unset shell variable would choose the built-in tasks
			c.report(n, noSource)
		}
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[Block]():
		if n.Kind != yaml.MappingNode {
			c.report(n, "%s must be a block of settings", path)
		}
		c.recordPlaces(n, path)
	case t.Kind() == reflect.Struct:
		c.walkStruct(n, t, path)
	case t.Kind() == reflect.Map:
		c.walkMap(n, t, path)
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			c.report(n, "%s must be a list, as in [a, b]", path)
			return
		}
		for i, item := range n.Content {
			c.walk(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		if want, ok := scalarFits(n, t); !ok {
			c.report(n, "%s must be %s, not %q", path, want, n.Value)
		}
	}
}

func (c *checker) walkStruct(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind != yaml.MappingNode {
		where := cmp.Or(path, "the document")
		c.report(n, "%s must be a block of settings", where)
		return
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name := f.Tag.Get("mapstructure"); name != "-" {
			fields[name] = f.Type
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		c.places[full] = c.source.place(key.Line)
		if remedy := removed[full]; remedy != "" {
			c.report(key, "%s was removed: %s", full, remedy)
			continue
		}
		ft, known := fields[key.Value]
		if !known {
			c.report(key, "unknown setting %q%s", full, suggest(key.Value, fields))
			continue
		}
		c.walk(value, ft, full)
	}
}

// walkMap checks a block whose keys are chosen by the user.
func (c *checker) walkMap(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind != yaml.MappingNode {
		c.report(n, "%s must be a block of settings", path)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		full := path + "." + n.Content[i].Value
		c.places[full] = c.source.place(n.Content[i].Line)
		c.walk(n.Content[i+1], t.Elem(), full)
	}
}

// recordPlaces records the places of a component's own settings.
func (c *checker) recordPlaces(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		full := path + "." + n.Content[i].Value
		c.places[full] = c.source.place(n.Content[i].Line)
		c.recordPlaces(n.Content[i+1], full)
	}
}

// scalarFits reports whether a YAML scalar can be decoded as t, and describes the values of t.
func scalarFits(n *yaml.Node, t reflect.Type) (want string, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return "a single value", false
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		_, err := time.ParseDuration(n.Value)
		return "a duration such as 90s or 5m", err == nil
	case t == reflect.TypeFor[ByteSize]():
		var b ByteSize
		return "a size such as 512MB", b.UnmarshalText([]byte(n.Value)) == nil
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		_, err := strconv.ParseInt(n.Value, 10, 64)
		return "a whole number", err == nil && n.Tag == "!!int"
	case reflect.Float64:
		_, err := strconv.ParseFloat(n.Value, 64)
		return "a number", err == nil && (n.Tag == "!!float" || n.Tag == "!!int")
	case reflect.Bool:
		return "true or false", n.Tag == "!!bool"
	}
	return "text (put it in quotes)", n.Tag == "!!str"
}

// suggest returns the end of a message with the closest known key, or with all known keys.
func suggest(key string, fields map[string]reflect.Type) string {
	names := slices.Sorted(maps.Keys(fields))
	if near := nearest.Name(key, names, 2); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ": known settings are " + strings.Join(names, ", ")
}

// blockHook decodes the JSON text of a raw path to a Block.
func blockHook(_, to reflect.Type, data any) (any, error) {
	text, isText := data.(string)
	if to != reflect.TypeFor[Block]() || !isText {
		return data, nil
	}
	var b Block
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return nil, fmt.Errorf("a block of settings is expected: %w", err)
	}
	return b, nil
}

// numberAsText allows a size to be written without quotes.
func numberAsText(_, to reflect.Type, data any) (any, error) {
	if to != reflect.TypeFor[ByteSize]() {
		return data, nil
	}
	return fmt.Sprint(data), nil
}
