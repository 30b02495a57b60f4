package selection

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// maxNodes bounds an expanded expression, in which an argument is repeated for each use
// in a predicate.
const maxNodes = 20_000

// expansion expands named predicates: it replaces a name or a call by the predicate's
// expression with its arguments. Inserted nodes have the position of the name, so that
// errors point at the user's text.
type expansion struct {
	info *ast.SourceInfo
	next int64
	size int
	used map[string]bool
	err  *offsetError
}

// parseBody returns the tree of an expression with named predicates expanded.
func parseBody(env *cel.Env, lib *library, expr string) (ast.Expr, error) {
	parsed, _, err := parseExpr(env, lib, expr)
	if err != nil {
		return nil, err
	}
	return parsed.NativeRep().Expr(), nil
}

// parseExpr parses an expression, expands named predicates, and returns their names.
func parseExpr(env *cel.Env, lib *library, expr string) (*cel.Ast, map[string]bool, error) {
	parsed, issues := env.Parse(expr)
	if issues.Err() != nil {
		return nil, nil, explain(expr, lib, issues)
	}
	tree := parsed.NativeRep()
	x := &expansion{info: tree.SourceInfo(), next: ast.MaxID(tree), used: map[string]bool{}}
	own := map[string]bool{} // variables of comprehensions
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			own[c.IterVar()], own[c.IterVar2()] = true, true
		}
	}))
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if n := lib.byName[e.AsIdent()]; n != nil && !own[n.Name] {
				x.replace(e, n, nil)
			}
		case ast.CallKind:
			if n := lib.byName[e.AsCall().FunctionName()]; n != nil && !e.AsCall().IsMemberFunction() {
				x.replace(e, n, e.AsCall().Args())
			}
		}
	}))
	if x.err != nil {
		return nil, nil, x.err.in(expr)
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) { intLiteralToDouble(e, own) }))
	return parsed, x.used, nil
}

// intLiteralToDouble turns avg == 1 into avg == 1.0: CEL's checker accepts an int and a
// double only for <, <=, > and >=.
func intLiteralToDouble(e ast.Expr, own map[string]bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals && e.AsCall().FunctionName() != operators.NotEquals {
		return
	}
	args := e.AsCall().Args()
	for i, arg := range args {
		if arg.Kind() != ast.LiteralKind || !isDouble(args[1-i], own) {
			continue
		}
		if n, whole := arg.AsLiteral().(types.Int); whole {
			arg.SetKindCase(ast.NewExprFactory().NewLiteral(arg.ID(), types.Double(n)))
		}
	}
}

// isDouble reports whether e is of type double. Variables in own hide columns.
func isDouble(e ast.Expr, own map[string]bool) bool {
	switch e.Kind() {
	case ast.IdentKind:
		c, _ := arrowrec.Episodes.Column(e.AsIdent())
		return !own[e.AsIdent()] && (c.Kind == arrowrec.Float64 || groupTypes[e.AsIdent()] == cel.DoubleType)
	case ast.SelectKind:
		c, _ := arrowrec.Steps.Column(e.AsSelect().FieldName())
		return c.Kind == arrowrec.Float64
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case "pass_at_k", "double":
			return true
		case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Negate:
			return slices.ContainsFunc(e.AsCall().Args(), func(arg ast.Expr) bool { return isDouble(arg, own) })
		}
	}
	return false
}

// replace replaces e by the body of n.
func (x *expansion) replace(e ast.Expr, n *Named, args []ast.Expr) {
	at, _ := x.info.GetOffsetRange(e.ID())
	if x.err != nil {
		return
	}
	if len(args) < n.required() || len(args) > len(n.Params) {
		x.fail(at.Start, fmt.Sprintf("%s %s, got %d: %s", n.Name, n.takes(), len(args), n.Usage()))
		return
	}
	bound := map[string]ast.Expr{}
	for i, p := range n.Params {
		if bound[p.Name] = n.defaults[i]; i < len(args) {
			bound[p.Name] = args[i]
		}
	}
	body := x.copy(n.body, &at)
	ast.PostOrderVisit(body, ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() != ast.IdentKind {
			return
		}
		arg, ok := bound[part.AsIdent()]
		switch {
		case !ok || x.err != nil:
		case arg == n.defaults[paramIndex(n, part.AsIdent())]:
			part.SetKindCase(x.copy(arg, &at))
		default:
			part.SetKindCase(x.copy(arg, nil))
		}
	}))
	x.used[n.Name] = true
	e.SetKindCase(body)
}

func paramIndex(n *Named, name string) int {
	for i, p := range n.Params {
		if p.Name == name {
			return i
		}
	}
	return -1
}

// copy copies an expression with new ids; nodes have the position at, or keep theirs if at is nil.
func (x *expansion) copy(e ast.Expr, at *ast.OffsetRange) ast.Expr {
	out := ast.NewExprFactory().CopyExpr(e)
	out.RenumberIDs(func(id int64) int64 {
		if x.size++; x.size > maxNodes {
			x.fail(0, "the expression is too long when its predicates are expanded")
		}
		place := at
		if place == nil {
			if own, ok := x.info.GetOffsetRange(id); ok {
				place = &own
			}
		}
		x.next++
		if place != nil {
			x.info.SetOffsetRange(x.next, *place)
		}
		return x.next
	})
	return out
}

func (x *expansion) fail(offset int32, text string) {
	if x.err == nil {
		x.err = &offsetError{offset, text}
	}
}
