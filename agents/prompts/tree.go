package prompts

import (
	"errors"
	"slices"
	"text/template/parse"
)

// visit calls fn for each command and each template action in the tree below n.
func visit(n parse.Node, fn func(parse.Node) error) error {
	all := func(nodes ...parse.Node) error {
		for _, node := range nodes {
			if err := visit(node, fn); err != nil {
				return err
			}
		}
		return nil
	}
	list := func(list *parse.ListNode) error {
		if list == nil {
			return nil
		}
		return all(list.Nodes...)
	}
	branch := func(b *parse.BranchNode) error {
		return errors.Join(all(b.Pipe), list(b.List), list(b.ElseList))
	}
	switch n := n.(type) {
	case *parse.ListNode:
		return list(n)
	case *parse.IfNode:
		return branch(&n.BranchNode)
	case *parse.RangeNode:
		return branch(&n.BranchNode)
	case *parse.WithNode:
		return branch(&n.BranchNode)
	case *parse.ActionNode:
		return all(n.Pipe)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			if err := all(n.Pipe); err != nil {
				return err
			}
		}
		return fn(n)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if err := errors.Join(fn(c), all(c.Args...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewriteHas turns {{.Has "TOOL"}} into a call of the function has. The template package in use
// cannot call methods. One that can would make the linker keep all methods of all types, 19 MB of
// the binary.
func (s *Set) rewriteHas() {
	for _, t := range s.templates.Templates() {
		if t.Tree == nil {
			continue
		}
		_ = visit(t.Root, func(n parse.Node) error {
			if c, ok := n.(*parse.CommandNode); ok {
				rewriteHas(t.Tree, c)
			}
			return nil
		})
	}
}

func rewriteHas(tree *parse.Tree, c *parse.CommandNode) {
	var view parse.Node
	switch n := c.Args[0].(type) {
	case *parse.FieldNode: // .Has
		if slices.Equal(n.Ident, []string{"Has"}) {
			view = &parse.DotNode{Pos: n.Pos}
		}
	case *parse.VariableNode: // $.Has or $view.Has
		if len(n.Ident) == 2 && n.Ident[1] == "Has" {
			view = &parse.VariableNode{NodeType: n.NodeType, Pos: n.Pos, Ident: n.Ident[:1]}
		}
	}
	if view != nil {
		has := parse.NewIdentifier("has").SetTree(tree).SetPos(c.Args[0].Position())
		c.Args = append([]parse.Node{has, view}, c.Args[1:]...)
	}
}
