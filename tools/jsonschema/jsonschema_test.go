package jsonschema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

func TestReadKeepsTheOrderOfArguments(t *testing.T) {
	tool, err := jsonschema.Read(schemas.ToolSchema{Name: "t", Parameters: json.RawMessage(`{"required":["b"],"properties":{
		"c":{"type":["null","array"],"items":{ "type":"integer" }},"b":{"type":"string","description":"d"},"a":true,"e":{"enum":["x",null]}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := []jsonschema.Argument{
		{Name: "c", Types: []string{"array"}, Items: `{ "type":"integer" }`},
		{Name: "b", Types: []string{"string"}, Required: true, Description: "d"},
		{Name: "a"},
		{Name: "e", Enum: []any{"x", nil}},
	}
	if diff := cmp.Diff(want, tool.Arguments); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefusesInvalidSchemas(t *testing.T) {
	for _, parameters := range []string{``, `[]`, `{"type":7}`, `{"properties":{"a":null}}`, `{"properties":{"a":{"$ref":"#/nowhere"}}}`} {
		if _, err := jsonschema.Read(schemas.ToolSchema{Parameters: json.RawMessage(parameters)}); err == nil {
			t.Errorf("%s was accepted", parameters)
		}
	}
}
