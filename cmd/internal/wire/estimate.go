package wire

import (
	"context"
	"fmt"
	"math"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/preflight"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// The length of a typical episode of an agent with a model. It is an assumption: models differ.
const (
	TypicalCalls   = 20  // calls of an episode
	ReplyTokens    = 250 // tokens of an answer
	sampledPrompts = 20  // tasks whose first prompts are counted
	// ObservationTokens is the number of tokens of an observation.
	ObservationTokens = 650
)

// Plan is what a run would do.
type Plan struct {
	Episodes []string // ids, in the order in which they start
	Reused   int      // how many of them are staged already
	Estimate Estimate // of the others
}

// Estimate is what the remaining episodes of a run may use. It ignores retries and prompt caches.
type Estimate struct {
	FirstPrompt  int64 `json:"first_prompt_tokens"`  // mean over tasks
	LongestReply int64 `json:"longest_reply_tokens"` // llm.max_tokens
	Typical      Use   `json:"typical"`              // if an episode takes TypicalCalls calls with answers of ReplyTokens
	Most         Use   `json:"most"`                 // if every episode takes agent.max_steps calls with answers of LongestReply
}

// Use is a number of model calls and what they use.
type Use struct {
	Calls        int64    `json:"calls"`
	PromptTokens int64    `json:"prompt_tokens"`
	ReplyTokens  int64    `json:"reply_tokens"`
	CostUSD      *float64 `json:"cost_usd"` // at most what the limits allow; nil: the price of a model is unknown
	Limited      bool     `json:"limited"`  // a limit ends the run or its episodes earlier
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
	longest := int64(llms.DefaultMaxTokens)
	if limit := r.cfg.LLM.MaxTokens; limit != nil {
		longest = int64(*limit)
	}
	return Estimate{
		FirstPrompt: first, LongestReply: longest,
		Typical: r.use(episodes, min(TypicalCalls, most), first, min(ReplyTokens, longest)),
		Most:    r.use(episodes, most, first, longest),
	}, nil
}

// use returns what episodes use if they take a number of calls and an answer has reply tokens.
func (r *Run) use(episodes, calls, first, reply int64) Use {
	u := Use{Calls: episodes * calls, ReplyTokens: episodes * calls * reply}
	for i := range calls {
		prompt := first + i*(reply+ObservationTokens)
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
	limits := r.cfg.Limits
	for _, limit := range []float64{limits.TotalCost, limits.TaskCost * float64(len(r.Tasks)), limits.EpisodeCost * float64(episodes)} {
		if limit > 0 && u.CostUSD != nil && *u.CostUSD > limit {
			u.CostUSD, u.Limited = &limit, true
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
		begin, err := agents.Preview(p, t.Public(), r.Agent.tools)
		if err != nil {
			return 0, err
		}
		request := llms.Request{Tools: begin.Tools}
		for _, s := range begin.Steps {
			request.Messages = append(request.Messages, llms.Message{Role: s.Source, Content: s.Text})
		}
		total += counter.Prompt(request)
	}
	return int64(total / len(tasks)), nil
}

// limitsCheck fails if the first call of an episode may cost more than the episode may, for all of the
// first tasks: every episode would end before its first call.
func (r *Run) limitsCheck(ctx context.Context) []preflight.Result {
	name, limit := "limits.episode_cost", r.cfg.Limits.EpisodeCost
	if task := r.cfg.Limits.TaskCost; limit == 0 || task > 0 && task < limit {
		name, limit = "limits.task_cost", task
	}
	if limit == 0 || !r.Agent.needs.Model {
		return nil
	}
	least := math.Inf(1)
	for _, t := range r.Tasks[:min(len(r.Tasks), sampledPrompts)] {
		p, err := r.Agent.Policy(schemas.Job{}, t)
		if err != nil {
			return nil // the run reports it
		}
		begin, err := agents.Preview(p, t.Public(), r.Agent.tools)
		if err != nil {
			return nil
		}
		var first firstCall
		_, _ = p.Next(llms.WithAccount(ctx, &first), &begin) // fails, at the latest when it begins the call
		if least = min(least, first.worst); least <= limit {
			return nil
		}
	}
	return []preflight.Result{preflight.Fail("limits", &pipeline.StopError{
		Code: 2, Err: fmt.Errorf("%s is $%.4f, but the first call of an episode may cost $%.4f: no episode could make a call", name, limit, least),
		Remedy: fmt.Sprintf("raise %s, to several times that amount, or lower llm.max_tokens", name),
	})}
}

// firstCall is an account that refuses a call and remembers what it may cost.
type firstCall struct{ worst float64 }

func (f *firstCall) Begin(_ context.Context, worst float64) (context.Context, error) {
	f.worst = worst
	return nil, llms.ErrBudget
}
func (*firstCall) End(context.Context, schemas.Payment) error { return nil }
func (*firstCall) Attempt() int                               { return 0 }
func (*firstCall) FromCache()                                 {}
func (*firstCall) Waiting(llms.Wait, error)                   {}
