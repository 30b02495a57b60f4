package trace

import (
	"context"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// LocalTypes are the types that local variables had when their functions ended,
// sorted: function ("file:qualified name") -> variable -> names of types.
type LocalTypes map[string]map[string][]string

// Types runs the tests of a tree with a patch and returns the types of local variables. If there are
// none, the error is ErrNoTrace.
func Types(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, how verify.Variant) (LocalTypes, error) {
	run, err := watch(ctx, r, t, tree, patch, how, map[string]any{"mode": "types"})
	if err != nil {
		return nil, err
	}
	types := readTypes(run.Probe)
	if len(types) == 0 {
		return nil, ErrNoTrace
	}
	return types, nil
}

// maxTypes bounds the types of one variable.
const maxTypes = 20

func readTypes(raw []byte) LocalTypes {
	out := LocalTypes{}
	records(raw, func(r record) {
		var function, name, kind string
		if r.kind != "type" || !r.into(&function, &name, &kind) {
			return
		}
		if out[function] == nil {
			out[function] = map[string][]string{}
		}
		known := out[function][name]
		if i, there := slices.BinarySearch(known, kind); !there && len(known) < maxTypes {
			out[function][name] = slices.Insert(known, i, kind)
		}
	})
	return out
}
