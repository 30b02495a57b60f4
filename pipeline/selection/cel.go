package selection

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// nullColumns is the variable behind known(): the names of the null columns.
const nullColumns = "_null"

// Variables beside the columns of episodes.
const (
	varSteps = "steps" // all rows of table steps
	varCalls = "calls" // those of the agent: calls, and replies without one
)

var celTypes = map[arrowrec.Kind]*cel.Type{
	arrowrec.Text: cel.StringType, arrowrec.Bool: cel.BoolType, arrowrec.Int32: cel.IntType, arrowrec.Int64: cel.IntType,
	arrowrec.Float64: cel.DoubleType, arrowrec.Timestamp: cel.TimestampType, arrowrec.TextList: cel.ListType(cel.StringType),
}

// program is one compiled predicate.
type program struct {
	prg   cel.Program
	text  string          // the expression with its predicates written out, as far as it can be
	steps bool            // it asks the steps
	group bool            // it asks the group
	used  map[string]bool // predicates that it names
}

// verdict is what a predicate says of an episode. Unknown: it depends on a
// column that is null.
type verdict uint8

const (
	no verdict = iota
	yes
	unknown
)

// environment is what expressions may name, predicates apart.
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

// words are the names of columns and variables.
var words = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{varSteps: true, varCalls: true}
	for _, c := range arrowrec.Episodes.Columns {
		names[c.Name] = true
	}
	for name := range groupTypes {
		names[name] = true
	}
	return names
})

func compile(expr string) (program, error) {
	env, err := environment()
	if err != nil {
		return program{}, err
	}
	lib, err := loadLibrary()
	if err != nil {
		return program{}, err
	}
	parsed, used, err := parseExpr(env, lib, expr)
	if err != nil {
		return program{}, err
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return program{}, explain(expr, lib, issues)
	}
	if checked.OutputType() != cel.BoolType {
		return program{}, fmt.Errorf("%q is of type %s, want bool", expr, checked.OutputType())
	}
	if err := wholeDivision(expr, checked.NativeRep()); err != nil {
		return program{}, err
	}
	prg, err := env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.InterruptCheckFrequency(10_000))
	if err != nil {
		return program{}, fmt.Errorf("preparing %q: %w", expr, err)
	}
	p := program{prg: prg, used: used, text: written(expr, used, checked)}
	for _, ref := range checked.NativeRep().ReferenceMap() {
		_, inGroup := groupTypes[ref.Name]
		p.group = p.group || inGroup
		p.steps = p.steps || ref.Name == varSteps || ref.Name == varCalls
	}
	return p, nil
}

var isKnown = regexp.MustCompile(`!\("(\w+)" in ` + nullColumns + `\)`)

// written is an expression with the predicates in it written out; loops cannot be.
func written(expr string, used map[string]bool, checked *cel.Ast) string {
	if len(used) == 0 {
		return expr
	}
	text, err := cel.AstToString(checked)
	if err != nil {
		return expr
	}
	return isKnown.ReplaceAllString(text, "known($1)")
}

// wholeDivision refuses int / int, which drops the fraction of a rate.
func wholeDivision(expr string, tree *ast.AST) error {
	var found *placed
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Divide || tree.GetType(e.ID()) != types.IntType {
			return
		}
		at, _ := tree.SourceInfo().GetOffsetRange(e.ID())
		found = &placed{at.Start, "dividing two whole numbers drops the fraction: write double(a) / double(b)"}
	}))
	if found == nil {
		return nil
	}
	return found.in(expr)
}

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
		return nil, h.NewError(args[0].ID(), fmt.Sprintf("known(%s): table episodes has no such column%s", name, meant(name, columnNames(arrowrec.Episodes))))
	}
	isNull := h.NewCall(operators.In, h.NewLiteral(types.String(name)), h.NewIdent(nullColumns))
	return h.NewCall(operators.LogicalNot, isNull), nil
}

// activation binds the columns of an episode; null ones are unknown, so that
// the logic is three-valued: true || null is true, false || null is unknown.
func activation(e *Episode, g *tally) (cel.PartialActivation, error) {
	vars := map[string]any{}
	null := []string{}
	var patterns []*cel.AttributePatternType
	rv := reflect.ValueOf(&e.Row).Elem()
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
	vars[varSteps] = stepList(e.Steps, func(*schemas.StepRow) bool { return true })
	vars[varCalls] = stepList(e.Steps, func(s *schemas.StepRow) bool { return s.Source == "agent" })
	for name, v := range g.vars() {
		if v == nil {
			patterns = append(patterns, cel.AttributePattern(name))
			continue
		}
		vars[name] = v
	}
	return cel.PartialVars(vars, patterns...)
}

func (p program) eval(ctx context.Context, a cel.PartialActivation) (verdict, error) {
	out, _, err := p.prg.ContextEval(ctx, a)
	switch {
	case ctx.Err() != nil:
		return no, context.Cause(ctx)
	case err != nil:
		return no, err
	case types.IsUnknown(out):
		return unknown, nil
	case out.Value() == true:
		return yes, nil
	}
	return no, nil
}
