package selection

import (
	"encoding/json"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// stepType is the type of a row of the table steps in expressions. Its fields are the columns.
var stepType = types.NewObjectType("step")

// stepTypes is a provider of CEL types that adds stepType.
type stepTypes struct{ types.Provider }

func (p stepTypes) FindStructType(name string) (*types.Type, bool) {
	if name == stepType.TypeName() {
		return types.NewTypeTypeWithParam(stepType), true
	}
	return p.Provider.FindStructType(name)
}

func (p stepTypes) FindStructFieldNames(name string) ([]string, bool) {
	if name == stepType.TypeName() {
		return columnNames(arrowrec.Steps), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (p stepTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name != stepType.TypeName() {
		return p.Provider.FindStructFieldType(name, field)
	}
	c, ok := arrowrec.Steps.Column(field)
	if !ok {
		return nil, false
	}
	value := func(target any) any {
		row, ok := target.(*schemas.StepRow)
		if !ok {
			return nil
		}
		return c.Value(reflect.ValueOf(row).Elem())
	}
	return &types.FieldType{
		Type:  celTypes[c.Kind],
		IsSet: func(target any) bool { return value(target) != nil },
		GetFrom: func(target any) (any, error) {
			if v := value(target); v != nil {
				return v, nil
			}
			return types.NewUnknown(0, types.NewAttributeTrail(name+"."+field)), nil
		},
	}, true
}

// stepValue is a row of the table steps as a CEL value.
type stepValue struct{ row *schemas.StepRow }

func (s stepValue) ConvertToNative(reflect.Type) (any, error) { return s.row, nil }
func (s stepValue) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return stepType
	}
	return types.NewErr("a step cannot be converted to %s", t.TypeName())
}
func (s stepValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(stepValue)
	return types.Bool(ok && o.row == s.row)
}
func (s stepValue) Type() ref.Type { return stepType }
func (s stepValue) Value() any     { return s.row }

// stepList returns the rows for which include returns true, as CEL values.
func stepList(rows []schemas.StepRow, include func(*schemas.StepRow) bool) []ref.Val {
	out := []ref.Val{}
	for i := range rows {
		if include(&rows[i]) {
			out = append(out, stepValue{&rows[i]})
		}
	}
	return out
}

// tokensOf implements the function tokens_of: it returns the count of a tokenizer in
// sft_tokens_json, which is {"<tokenizer>": n}. The tokenizer "" means the only one in it.
func tokensOf(text, tokenizer ref.Val) ref.Val {
	var counts map[string]int64
	name := string(tokenizer.(types.String))
	if err := json.Unmarshal([]byte(text.(types.String)), &counts); err != nil {
		return types.NewErr("sft_tokens_json is not a map of numbers: %v", err)
	}
	if name == "" && len(counts) == 1 {
		for name = range counts {
		}
	}
	n, ok := counts[name]
	if !ok {
		return types.NewUnknown(0, types.NewAttributeTrail("sft_tokens_json"))
	}
	return types.Int(n)
}
