package selection

import (
	"context"
	"fmt"
	"reflect"
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// program is a compiled predicate.
type program struct {
	prg   cel.Program
	text  string          // the expression in the form for the funnel (see expandedText)
	steps bool            // whether it uses the episode's steps or calls
	group bool            // whether it uses variables of the group
	used  map[string]bool // the named predicates that it uses
	refs  map[string]bool // the variables that it refers to
}

// verdict is the value of a predicate for an episode. It is unknown if it depends on a
// null column.
type verdict uint8

const (
	no verdict = iota
	yes
	unknown
)

// compile parses an expression of type bool, expands named predicates, and checks it.
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
	if err := rejectIntDivision(expr, checked.NativeRep()); err != nil {
		return program{}, err
	}
	prg, err := env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.InterruptCheckFrequency(10_000))
	if err != nil {
		return program{}, fmt.Errorf("preparing %q: %w", expr, err)
	}
	p := program{prg: prg, used: used, text: expandedText(expr, used, checked), refs: map[string]bool{}}
	for _, ref := range checked.NativeRep().ReferenceMap() {
		p.refs[ref.Name] = true
		_, inGroup := groupTypes[ref.Name]
		p.group = p.group || inGroup
		p.steps = p.steps || ref.Name == varSteps || ref.Name == varCalls
	}
	return p, nil
}

// isKnown matches the expansion of the macro known (see expandKnown).
var isKnown = regexp.MustCompile(`!\("(\w+)" in ` + nullColumns + `\)`)

// expandedText returns an expression with named predicates expanded. If CEL cannot format the
// result, for example because of macros that loop, it returns expr itself.
func expandedText(expr string, used map[string]bool, checked *cel.Ast) string {
	if len(used) == 0 {
		return expr
	}
	text, err := cel.AstToString(checked)
	if err != nil {
		return expr
	}
	return isKnown.ReplaceAllString(text, "known($1)")
}

// rejectIntDivision returns an error if expr divides integers, because the result would lose
// its fraction, which is rarely intended in a rate.
func rejectIntDivision(expr string, tree *ast.AST) error {
	var found *offsetError
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Divide || tree.GetType(e.ID()) != types.IntType {
			return
		}
		at, _ := tree.SourceInfo().GetOffsetRange(e.ID())
		found = &offsetError{at.Start, "dividing two whole numbers drops the fraction: write double(a) / double(b)"}
	}))
	if found == nil {
		return nil
	}
	return found.exprError(expr)
}

// activation binds the variables of predicates to the values of an episode and its group. It
// makes null values unknown, so that CEL uses three-valued logic.
func activation(e *Episode, columns []arrowrec.Column, g *groupCounts) (cel.PartialActivation, error) {
	vars := map[string]any{}
	null := []string{}
	var patterns []*cel.AttributePatternType
	rv := reflect.ValueOf(&e.Row).Elem()
	for _, c := range columns {
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
	for name, v := range g.variables() {
		if v == nil {
			patterns = append(patterns, cel.AttributePattern(name))
			continue
		}
		vars[name] = v
	}
	return cel.PartialVars(vars, patterns...)
}

// eval returns the value of the predicate for an activation.
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
