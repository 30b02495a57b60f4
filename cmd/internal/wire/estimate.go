package wire

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// The length of a typical episode of an agent with a model. It is an assumption: models differ.
const (
	TypicalCalls   = 20  // calls of an episode
	ReplyTokens    = 250 // tokens of an answer
	GrowthTokens   = 900 // tokens by which an answer and its observation lengthen the conversation
	sampledPrompts = 20  // tasks whose first prompts are counted
)

// Plan is what a run would do.
type Plan struct {
	Episodes []string // ids, in the order in which they start
	Reused   int      // how many of them are staged already
	Estimate Estimate // of the others
}

// Estimate is what the remaining episodes of a run may use. It ignores retries and prompt caches.
type Estimate struct {
	FirstPrompt int64 `json:"first_prompt_tokens"` // mean over tasks
	Typical     Use   `json:"typical"`             // if an episode takes TypicalCalls calls
	Most        Use   `json:"most"`                // if every episode takes agent.max_steps calls
}

// Use is a number of model calls and what they use.
type Use struct {
	Calls        int64    `json:"calls"`
	PromptTokens int64    `json:"prompt_tokens"`
	ReplyTokens  int64    `json:"reply_tokens"`
	CostUSD      *float64 `json:"cost_usd"` // nil: the price of a model is unknown
}

// Plan returns what the run would do. It calls no model and starts no sandbox.
func (r *Run) Plan(ctx context.Context) (Plan, error) {
	cfg, deps, err := r.parts(ctx)
	if err != nil {
		return Plan{}, err
	}
	ids, err := r.Episodes(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Episodes: ids}
	staged := map[string]bool{}
	for o, err := range deps.Staging.List(ctx, rundir.StagedPrefix(cfg.RunID)) {
		if err != nil {
			break // the check of the store says why
		}
		staged[o.Key] = true
	}
	for _, id := range ids {
		if staged[sinks.StagedKey(cfg.RunID, id)] {
			p.Reused++
		}
	}
	p.Estimate, err = r.estimate(int64(len(ids) - p.Reused))
	return p, err
}

// estimate returns what a number of episodes may use.
func (r *Run) estimate(episodes int64) (Estimate, error) {
	if !r.Agent.needs.Model {
		free := Use{CostUSD: new(0.0)}
		return Estimate{Typical: free, Most: free}, nil
	}
	first, err := r.firstPrompt()
	if err != nil {
		return Estimate{}, err
	}
	most := int64(r.cfg.Agent.MaxSteps)
	return Estimate{
		FirstPrompt: first,
		Typical:     r.use(episodes, min(TypicalCalls, most), first),
		Most:        r.use(episodes, most, first),
	}, nil
}

// use returns what episodes with a number of calls use.
func (r *Run) use(episodes, calls, first int64) Use {
	u := Use{Calls: episodes * calls, ReplyTokens: episodes * calls * ReplyTokens}
	for i := range calls {
		prompt := first + i*GrowthTokens
		for _, limit := range []int64{r.cfg.Agent.MaxPromptTokens, int64(r.cfg.LLM.ContextLimit)} {
			if limit > 0 {
				prompt = min(prompt, limit)
			}
		}
		u.PromptTokens += episodes * prompt
	}
	usage := &schemas.Usage{Prompt: u.PromptTokens, Completion: u.ReplyTokens}
	for _, price := range r.Agent.modelPrices() {
		if price == nil {
			u.CostUSD = nil
			break
		}
		if cost := price.Cost(usage); u.CostUSD == nil || *cost > *u.CostUSD { // of several models, the most expensive one
			u.CostUSD = cost
		}
	}
	return u
}

// modelPrices returns the prices of the agent's models; nil for a model whose price is unknown.
func (a *Agent) modelPrices() []*middle.Price {
	var out []*middle.Price
	for _, s := range a.servers {
		out = append(out, a.prices(s.llm).Find(s.llm.Model))
	}
	return out
}

// firstPrompt returns the mean number of tokens of the first prompts of some tasks.
func (r *Run) firstPrompt() (int64, error) {
	l := r.cfg.LLM
	counter, err := tokens.Choose(l.Tokenizer, l.Model)
	if err != nil {
		return 0, fmt.Errorf("llm.tokenizer: %w", err)
	}
	total, tasks := 0, r.Tasks[:min(len(r.Tasks), sampledPrompts)]
	for _, t := range tasks {
		p, err := r.Agent.Policy(schemas.Job{}, t)
		if err != nil {
			return 0, err
		}
		system, problem, err := agents.Preview(p, t.Public(), r.Agent.tools)
		if err != nil {
			return 0, err
		}
		total += counter.Prompt(llms.Request{Messages: []llms.Message{{Role: "system", Content: system}, {Role: "user", Content: problem}}, Tools: r.Agent.tools})
	}
	return int64(total / len(tasks)), nil
}
