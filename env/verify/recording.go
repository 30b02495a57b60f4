package verify

import (
	"context"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Record is Observe for an unchanged tree. It keeps the run for VerifyRecorded.
func (v *Verifier) Record(ctx context.Context, t schemas.Task, tree env.Tree) (*Recording, error) {
	return v.observe(ctx, t, tree, nil, Variant{})
}

// VerifyRecorded is Verify, except that it uses a recording instead of a new run if the recording is of
// the tree that would be tested. The caller must know from other runs that the tests of that tree always
// give the same results.
func (v *Verifier) VerifyRecorded(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, recording *Recording) (schemas.Verdict, error) {
	verdict, _, err := v.verify(ctx, t, tree, patch, "", Variant{}, recording)
	return verdict, err
}
