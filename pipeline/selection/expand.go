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

// maxNodes is the maximum number of nodes of an expanded expression. Expanding nested calls
// can repeat an argument very often.
const maxNodes = 20_000

// expansion expands named predicates: it replaces a name or a call with the predicate's
// expression and inserts the arguments. Inserted nodes get the position of the name, so that
// errors point at the user's text.
type expansion struct {
	info *ast.SourceInfo
	next int64           // the last node ID in use
	size int             // number of nodes copied
	used map[string]bool // names of the predicates expanded
	err  *offsetError    // the first error
}

// parseBody returns the tree of an expression with named predicates expanded.
func parseBody(env *cel.Env, lib *library, expr string) (ast.Expr, error) {
	parsed, _, err := parseExpr(env, lib, expr)
	if err != nil {
		return nil, err
	}
	return parsed.NativeRep().Expr(), nil
}

// parseExpr parses an expression and expands named predicates. It also returns the names of
// these predicates.
func parseExpr(env *cel.Env, lib *library, expr string) (*cel.Ast, map[string]bool, error) {
	parsed, issues := env.Parse(expr)
	if issues.Err() != nil {
		return nil, nil, explain(expr, lib, issues)
	}
	tree := parsed.NativeRep()
	x := &expansion{info: tree.SourceInfo(), next: ast.MaxID(tree), used: map[string]bool{}}
	localVars := map[string]bool{} // variables of comprehensions
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			localVars[c.IterVar()], localVars[c.IterVar2()] = true, true
		}
	}))
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if n := lib.byName[e.AsIdent()]; n != nil && !localVars[n.Name] {
				x.replace(e, n, nil)
			}
		case ast.CallKind:
			if n := lib.byName[e.AsCall().FunctionName()]; n != nil && !e.AsCall().IsMemberFunction() {
				x.replace(e, n, e.AsCall().Args())
			}
		}
	}))
	if x.err != nil {
		return nil, nil, x.err.exprError(expr)
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) { intLiteralToDouble(e, localVars) }))
	return parsed, x.used, nil
}

// intLiteralToDouble turns avg == 1 into avg == 1.0. CEL's checker accepts an int together
// with a double only for <, <=, > and >=.
func intLiteralToDouble(e ast.Expr, localVars map[string]bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals && e.AsCall().FunctionName() != operators.NotEquals {
		return
	}
	args := e.AsCall().Args()
	for i, arg := range args {
		if arg.Kind() != ast.LiteralKind || !isDouble(args[1-i], localVars) {
			continue
		}
		if n, whole := arg.AsLiteral().(types.Int); whole {
			arg.SetKindCase(ast.NewExprFactory().NewLiteral(arg.ID(), types.Double(n)))
		}
	}
}

// isDouble reports whether e is of type double. The variables in localVars hide columns of
// the same name.
func isDouble(e ast.Expr, localVars map[string]bool) bool {
	switch e.Kind() {
	case ast.IdentKind:
		c, _ := arrowrec.Episodes.Column(e.AsIdent())
		return !localVars[e.AsIdent()] && (c.Kind == arrowrec.Float64 || groupTypes[e.AsIdent()] == cel.DoubleType)
	case ast.SelectKind:
		c, _ := arrowrec.Steps.Column(e.AsSelect().FieldName())
		return c.Kind == arrowrec.Float64
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case "pass_at_k", "double":
			return true
		case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Negate:
			return slices.ContainsFunc(e.AsCall().Args(), func(arg ast.Expr) bool { return isDouble(arg, localVars) })
		}
	}
	return false
}

// replace replaces e, a use of the predicate n, with the body of n.
func (x *expansion) replace(e ast.Expr, n *NamedExpr, args []ast.Expr) {
	at, _ := x.info.GetOffsetRange(e.ID())
	if x.err != nil {
		return
	}
	if len(args) < n.required() || len(args) > len(n.Params) {
		x.fail(at.Start, fmt.Sprintf("%s %s, got %d: %s", n.Name, n.describeArity(), len(args), n.Usage()))
		return
	}
	argOf := map[string]ast.Expr{}
	for i, p := range n.Params {
		if argOf[p.Name] = n.defaults[i]; i < len(args) {
			argOf[p.Name] = args[i]
		}
	}
	body := x.copy(n.body, &at)
	ast.PostOrderVisit(body, ast.NewExprVisitor(func(node ast.Expr) {
		if node.Kind() != ast.IdentKind {
			return
		}
		arg, ok := argOf[node.AsIdent()]
		switch {
		case !ok || x.err != nil:
		case arg == n.defaults[paramIndex(n, node.AsIdent())]:
			node.SetKindCase(x.copy(arg, &at))
		default:
			node.SetKindCase(x.copy(arg, nil))
		}
	}))
	x.used[n.Name] = true
	e.SetKindCase(body)
}

func paramIndex(n *NamedExpr, name string) int {
	for i, p := range n.Params {
		if p.Name == name {
			return i
		}
	}
	return -1
}

// copy copies an expression and gives the nodes new IDs. The nodes get the position at, or keep their
// own if at is nil.
func (x *expansion) copy(e ast.Expr, at *ast.OffsetRange) ast.Expr {
	out := ast.NewExprFactory().CopyExpr(e)
	out.RenumberIDs(func(id int64) int64 {
		if x.size++; x.size > maxNodes {
			x.fail(0, "the expression is too long when its predicates are expanded")
		}
		position := at
		if position == nil {
			if original, ok := x.info.GetOffsetRange(id); ok {
				position = &original
			}
		}
		x.next++
		if position != nil {
			x.info.SetOffsetRange(x.next, *position)
		}
		return x.next
	})
	return out
}

// fail records an error, unless there is one already.
func (x *expansion) fail(offset int32, text string) {
	if x.err == nil {
		x.err = &offsetError{offset, text}
	}
}
