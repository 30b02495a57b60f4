package selection

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// nullColumns is the variable behind known(): the names of the null columns.
const nullColumns = "_null"

var celTypes = map[arrowrec.Kind]*cel.Type{
	arrowrec.Text: cel.StringType, arrowrec.Bool: cel.BoolType, arrowrec.Int32: cel.IntType, arrowrec.Int64: cel.IntType,
	arrowrec.Float64: cel.DoubleType, arrowrec.Timestamp: cel.TimestampType, arrowrec.TextList: cel.ListType(cel.StringType),
}

// program is one compiled predicate.
type program struct{ prg cel.Program }

// verdict is what a predicate says of an episode. Unknown: it depends on a
// column that is null.
type verdict uint8

const (
	no verdict = iota
	yes
	unknown
)

func compile(expr string) (program, error) {
	opts := []cel.EnvOption{
		cel.Variable(nullColumns, cel.ListType(cel.StringType)),
		cel.Macros(append(cel.StandardMacros, cel.GlobalMacro("known", 1, expandKnown))...),
	}
	for _, c := range arrowrec.Episodes.Columns {
		opts = append(opts, cel.Variable(c.Name, celTypes[c.Kind]))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return program{}, fmt.Errorf("preparing expressions: %w", err)
	}
	checked, issues := env.Compile(expr)
	if err := issues.Err(); err != nil {
		return program{}, fmt.Errorf("%w (columns are those of table episodes)", err)
	}
	if checked.OutputType() != cel.BoolType {
		return program{}, fmt.Errorf("%q is of type %s, want bool", expr, checked.OutputType())
	}
	prg, err := env.Program(checked, cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return program{}, fmt.Errorf("preparing %q: %w", expr, err)
	}
	return program{prg}, nil
}

// expandKnown turns known(column) into !("column" in _null).
func expandKnown(h cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	if args[0].Kind() != ast.IdentKind {
		return nil, h.NewError(args[0].ID(), "known() takes the name of a column")
	}
	name := args[0].AsIdent()
	if _, ok := arrowrec.Episodes.Column(name); !ok {
		return nil, h.NewError(args[0].ID(), fmt.Sprintf("known(%s): table episodes has no such column", name))
	}
	isNull := h.NewCall(operators.In, h.NewLiteral(types.String(name)), h.NewIdent(nullColumns))
	return h.NewCall(operators.LogicalNot, isNull), nil
}

// activation binds the columns of an episode; null ones are unknown, so that
// the logic is three-valued: true || null is true, false || null is unknown.
func activation(e *schemas.EpisodeRow) (cel.PartialActivation, error) {
	vars := map[string]any{}
	null := []string{}
	var patterns []*cel.AttributePatternType
	rv := reflect.ValueOf(e).Elem()
	for _, c := range arrowrec.Episodes.Columns {
		v := c.Value(rv)
		if v == nil {
			null = append(null, c.Name)
			patterns = append(patterns, cel.AttributePattern(c.Name))
			continue
		}
		vars[c.Name] = v
	}
	vars[nullColumns] = null
	return cel.PartialVars(vars, patterns...)
}

func (p program) eval(a cel.PartialActivation) (verdict, error) {
	out, _, err := p.prg.Eval(a)
	switch {
	case err != nil:
		return no, err
	case types.IsUnknown(out):
		return unknown, nil
	case out.Value() == true:
		return yes, nil
	}
	return no, nil
}
