package selection

import (
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// environment declares everything that expressions can use, except named predicates (see
// expansion).
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("preparing expressions: %w", err)
	}
	opts := []cel.EnvOption{
		cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(stepTypes{registry}),
		cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Lists(), ext.TwoVarComprehensions(),
		cel.Macros(append(slices.Clone(cel.StandardMacros), cel.GlobalMacro("known", 1, expandKnown))...),
		cel.Variable(nullColumns, cel.ListType(cel.StringType)),
		cel.Variable(varSteps, cel.ListType(stepType)), cel.Variable(varCalls, cel.ListType(stepType)),
		cel.Function("pass_at_k", cel.Overload("pass_at_k_ints", []*cel.Type{cel.IntType, cel.IntType, cel.IntType}, cel.DoubleType, cel.FunctionBinding(passAtK))),
		cel.Function("tokens_of", cel.Overload("tokens_of_text", []*cel.Type{cel.StringType, cel.StringType}, cel.IntType, cel.BinaryBinding(tokensOf))),
	}
	for _, c := range arrowrec.Episodes.Columns {
		opts = append(opts, cel.Variable(c.Name, celTypes[c.Kind]))
	}
	for name, kind := range groupTypes {
		opts = append(opts, cel.Variable(name, kind))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("preparing expressions: %w", err)
	}
	return env, nil
})

// expandKnown turns known(column) into !("column" in _null), and known(step.column)
// into has(step.column).
func expandKnown(h cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	if args[0].Kind() == ast.SelectKind {
		return h.NewPresenceTest(args[0].AsSelect().Operand(), args[0].AsSelect().FieldName()), nil
	}
	if args[0].Kind() != ast.IdentKind {
		return nil, h.NewError(args[0].ID(), "known() takes the name of a column")
	}
	name := args[0].AsIdent()
	if _, ok := arrowrec.Episodes.Column(name); !ok {
		return nil, h.NewError(args[0].ID(), fmt.Sprintf("known(%s): table episodes has no such column%s", name, didYouMean(name, columnNames(arrowrec.Episodes))))
	}
	isNull := h.NewCall(operators.In, h.NewLiteral(types.String(name)), h.NewIdent(nullColumns))
	return h.NewCall(operators.LogicalNot, isNull), nil
}
