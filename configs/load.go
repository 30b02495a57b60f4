package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// delimiter keeps viper from splitting keys at dots (gpt-4.1).
const delimiter = "::"

// EnvPrefix is the prefix of environment variables that override settings.
const EnvPrefix = "TRACESMITH"

// rawPaths lists the settings that pass through viper as JSON text, so that their
// keys keep their case.
var rawPaths = []string{"tasks.with", "sandbox.with", "agent.with", "agent.tools"}

// Source is one configuration document.
type Source struct {
	Name string // file name, for messages
	Data []byte

	inline bool // a single setting, for which messages need no line number
}

func (s Source) place(line int) string {
	if s.inline || line < 1 {
		return s.Name
	}
	return fmt.Sprintf("%s:%d", s.Name, line)
}

// Input is the input of Load.
type Input struct {
	Sources   []Source
	Environ   []string // NAME=value
	Overrides []string // a.b=value; the value is parsed as YAML
	Flags     []Source // as Overrides, but each has its own name; they take precedence
}

// Load merges and validates the sources. The error joins all problems, each with its
// place and a remedy.
func Load(in Input) (Config, error) {
	merged, places := map[string]any{}, Places{}
	var problems []error
	var renamed []string
	for _, s := range in.Sources {
		doc, errs := parse(s, places, &renamed)
		problems = append(problems, errs...)
		merge(merged, doc)
	}
	if err := applyOverrides(merged, in, places, &renamed); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return Config{}, err
	}
	cfg, err := decode(merged)
	if err != nil {
		return Config{}, err
	}
	if len(places) > 0 {
		cfg.Places = places
	}
	cfg.RenameNotes = renamed
	return cfg, cfg.Validate()
}

// parse parses one document and checks its keys and scalar types against Config.
func parse(s Source, places Places, renamed *[]string) (map[string]any, []error) {
	var node yaml.Node
	if err := yaml.Unmarshal(s.Data, &node); err != nil {
		return nil, []error{yamlError(s, err)}
	}
	if len(node.Content) == 0 {
		return nil, nil
	}
	if errs := checkNode(s, node.Content[0], places, renamed); len(errs) > 0 {
		return nil, errs
	}
	var doc map[string]any
	if err := node.Decode(&doc); err != nil {
		return nil, []error{yamlError(s, err)}
	}
	return doc, nil
}

// yamlError moves the line in an error of the YAML library to the beginning of the
// message, where editors look for it.
func yamlError(s Source, err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); n == 1 && scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	return fmt.Errorf("%s: not valid YAML: %s", s.place(line), text)
}

// merge puts the values of from into into. Where from names another kind of component, the former one's settings go.
func merge(into, from map[string]any) {
	if kind, ok := from["kind"]; ok && into["kind"] != nil && fmt.Sprint(into["kind"]) != fmt.Sprint(kind) {
		delete(into, "with")
	}
	for k, v := range from {
		sub, isMap := v.(map[string]any)
		existing, existingIsMap := into[k].(map[string]any)
		if isMap && existingIsMap {
			merge(existing, sub)
			continue
		}
		into[k] = v
	}
}

// applyOverrides applies values from the environment, then those of -p, then those of other flags. The last one wins.
func applyOverrides(doc map[string]any, in Input, places Places, renamed *[]string) error {
	var overrides []Source
	var problems []error
	for _, kv := range slices.Sorted(slices.Values(in.Environ)) {
		name, value, _ := strings.Cut(kv, "=")
		path, hasPrefix := strings.CutPrefix(name, EnvPrefix+"_")
		if !hasPrefix {
			continue
		}
		if !strings.Contains(path, "__") { // perhaps a setting whose second underscore is missing
			section, key, _ := strings.Cut(path, "_")
			if slices.Contains(Keys(), strings.ToLower(section+"."+key)) {
				problems = append(problems, fmt.Errorf("%s is not a setting: write %s_%s__%s, with two underscores", name, EnvPrefix, section, key))
			}
			continue
		}
		overrides = append(overrides, Source{Name: name, Data: []byte(strings.ToLower(strings.ReplaceAll(path, "__", ".")) + "=" + value)})
	}
	for _, o := range in.Overrides {
		overrides = append(overrides, Source{Name: "-p " + o, Data: []byte(o)})
	}
	all := map[string]any{}
	for _, o := range append(overrides, in.Flags...) {
		path, value, ok := strings.Cut(string(o.Data), "=")
		if !ok || path == "" || slices.Contains(strings.Split(path, "."), "") {
			problems = append(problems, fmt.Errorf("%s: write -p section.key=value", o.Name))
			continue
		}
		nested, err := nest(path, value)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o.Name, err))
			continue
		}
		inner := Places{}
		parsed, errs := parse(Source{Name: o.Name, Data: nested, inline: true}, inner, renamed)
		for setting := range inner {
			if setting == path || strings.HasPrefix(setting, path+".") { // omit the value, which may be a secret
				places[setting], _, _ = strings.Cut(o.Name, "=")
			}
		}
		problems = append(problems, errs...)
		merge(all, parsed)
	}
	merge(doc, all)
	return errors.Join(problems...)
}

// nest returns a.b=value as a YAML document.
func nest(path, value string) ([]byte, error) {
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		return nil, fmt.Errorf("the value is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	parts := strings.Split(path, ".")
	for _, p := range slices.Backward(parts) {
		v = map[string]any{p: v}
	}
	return yaml.Marshal(v)
}

// decode decodes the merged document with a private viper instance. A key without a
// struct field is an error.
func decode(doc map[string]any) (Config, error) {
	doc = maps.Clone(doc)
	for _, path := range rawPaths {
		section, key, _ := strings.Cut(path, ".")
		sub, ok := doc[section].(map[string]any)
		if !ok || sub[key] == nil {
			continue
		}
		text, err := json.Marshal(sub[key])
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", path, err)
		}
		sub = maps.Clone(sub)
		sub[key], doc[section] = string(text), sub
	}
	servers, err := decodeMCP(doc["mcp"])
	if err != nil {
		return Config{}, err
	}
	llm, models, err := decodeModels(doc)
	if err != nil {
		return Config{}, err
	}
	delete(doc, "mcp")
	delete(doc, "llm")
	delete(doc, "models")
	v := viper.NewWithOptions(viper.KeyDelimiter(delimiter))
	if err := v.MergeConfigMap(doc); err != nil {
		return Config{}, fmt.Errorf("merging configuration: %w", err)
	}
	cfg := Default()
	err = v.UnmarshalExact(&cfg, func(dc *mapstructure.DecoderConfig) {
		dc.DecodeHook = mapstructure.ComposeDecodeHookFunc(
			blockHook, toolsHook, mapstructure.StringToTimeDurationHookFunc(), numberAsText, mapstructure.TextUnmarshallerHookFunc())
		dc.WeaklyTypedInput = false
		dc.ZeroFields = true // lists are replaced, not merged into the defaults
	})
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	cfg.MCP, cfg.LLM, cfg.Models = servers, llm, models
	return cfg, nil
}

// ReadSource reads a configuration file, or an embedded profile if there is no file of
// that name.
func ReadSource(name string) (Source, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		return Source{Name: name, Data: data}, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		if data, ok := Profile(name); ok {
			return Source{Name: "profile " + name, Data: data}, nil
		}
		return Source{}, fmt.Errorf("configuration file %s does not exist: create it or name a profile: %s", name, strings.Join(Profiles(), ", "))
	}
	return Source{}, fmt.Errorf("reading configuration: %w: name a YAML file or a profile: %s", err, strings.Join(Profiles(), ", "))
}
