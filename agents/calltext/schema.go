package calltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// property is what of a JSON Schema matters here.
type property struct {
	Type        types           `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Items       json.RawMessage `json:"items"`
	Required    []string        `json:"required"`
	Properties  properties      `json:"properties"`
}

// types is one type or a list of them, without null.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*t = slices.DeleteFunc(list, func(s string) bool { return s == "null" })
	return nil
}

// properties keeps the order in which a tool declares its parameters.
type properties struct {
	names  []string
	byName map[string]property
}

func (p *properties) UnmarshalJSON(data []byte) error {
	p.byName = map[string]property{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("properties must be an object")
		}
		var one property
		if err := dec.Decode(&one); err != nil {
			return err
		}
		p.names = append(p.names, name)
		p.byName[name] = one
	}
	return nil
}

// of is the schema of one parameter, nil if there is none.
func (p property) of(key string) *property {
	if one, ok := p.Properties.byName[key]; ok {
		return &one
	}
	return nil
}

// find reads the parameters of a tool. What cannot be read casts nothing: the
// tool's own check has the last word.
func find(tools []schemas.ToolSchema, name string) property {
	for _, t := range tools {
		if t.Name != name {
			continue
		}
		var p property
		if json.Unmarshal(t.Parameters, &p) == nil {
			return p
		}
	}
	return property{}
}

var numeral = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// cast brings a text to the first of the schema's types that it can mean; a
// text remains where it means none, or nothing is declared.
func cast(text string, p *property) any {
	if p == nil {
		return text
	}
	bare := strings.TrimSpace(text)
	for _, t := range p.Type {
		switch t {
		case "string":
			return text
		case "integer", "number":
			if numeral.MatchString(bare) {
				return json.Number(bare)
			}
		case "boolean":
			switch strings.ToLower(bare) {
			case "true", "1":
				return true
			case "false", "0":
				return false
			}
		case "array", "object":
			want := map[string]string{"array": "[", "object": "{"}[t]
			if strings.HasPrefix(bare, want) && json.Valid([]byte(bare)) {
				return json.RawMessage(bare)
			}
		}
	}
	return text
}
