package selection

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/tracesmith/tracesmith/schemas"
)

// groupTypes maps the variables about the attempts of a group, such as a task, to their types.
var groupTypes = map[string]*cel.Type{
	"n": cel.IntType, "n_correct": cel.IntType, "avg": cel.DoubleType, "best": cel.DoubleType, "worst": cel.DoubleType, "solved": cel.BoolType,
}

// groupCounts counts the attempts of a group that have a verdict, without those that ended
// with an infrastructure failure, because these say nothing about the task.
type groupCounts struct{ n, correct int64 }

func (c *groupCounts) add(e *schemas.EpisodeRow) {
	if e.Resolved == nil || e.TerminationClass == "infra" {
		return
	}
	c.n++
	if *e.Resolved {
		c.correct++
	}
}

// variables returns the values of the variables in groupTypes. A nil value is unknown.
func (c *groupCounts) variables() map[string]any {
	if c == nil || c.n == 0 {
		return map[string]any{"n": int64(0), "n_correct": int64(0), "avg": nil, "best": nil, "worst": nil, "solved": nil}
	}
	boolToFloat := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	return map[string]any{
		"n": c.n, "n_correct": c.correct, "avg": float64(c.correct) / float64(c.n),
		"best": boolToFloat(c.correct > 0), "worst": boolToFloat(c.correct == c.n), "solved": c.correct > 0,
	}
}

// passAtK computes the unbiased estimator of pass@k from n attempts of which c are correct,
// 1 - C(n-c, k) / C(n, k). It uses the product in Chen et al. 2021 (arXiv:2107.03374,
// figure 3), which does not overflow. The result is unknown if n < k.
func passAtK(args ...ref.Val) ref.Val {
	n, c, k := int64(args[0].(types.Int)), int64(args[1].(types.Int)), int64(args[2].(types.Int))
	switch {
	case k < 1:
		return types.NewErr("pass_at(%d): k must be at least 1", k)
	case n < k:
		return types.NewUnknown(0, types.NewAttributeTrail("n"))
	case n-c < k:
		return types.Double(1)
	}
	allWrong := 1.0
	for i := n - c + 1; i <= n; i++ {
		allWrong *= 1 - float64(k)/float64(i)
	}
	return types.Double(1 - allWrong)
}
