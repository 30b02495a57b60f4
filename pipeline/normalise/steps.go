package normalise

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// steps returns one row per step. Only the first call of a turn has the model's text,
// tokens, cost and latency.
func (n *normaliser) steps(e *schemas.EpisodeRow) ([]schemas.StepRow, error) {
	n.leaked = -1
	copied := false // the turn was copied from another episode
	rows := make([]schemas.StepRow, 0, len(n.ep.Steps))
	for i := range n.ep.Steps {
		s := &n.ep.Steps[i]
		n.red.Take()
		r := schemas.StepRow{
			EpisodeID: e.EpisodeID, StepIndex: int32(i), Split: e.Split, Repo: e.Repo, InstanceID: e.InstanceID, RunID: &e.RunID,
			Resolved: e.Resolved, TerminationClass: &e.TerminationClass, Model: n.model(e, s), Phase: nonZero(s.Phase),
			Source: s.Source, TS: new(s.At.UTC().Truncate(time.Microsecond)), Message: n.text(s.Text), ActionKind: metrics.None,
		}
		if s.Turn >= 0 {
			r.TurnIndex = new(int32(s.Turn))
		}
		if s.Call >= 0 {
			r.CallIndex = new(int32(s.Call))
		}
		if s.Source != "system" { // a system prompt takes no time in the environment
			r.EnvMS = &s.EnvMillis
		}
		r.Synthetic, r.Replayed = &s.Synthetic, &s.Replayed
		if s.Source == "agent" {
			r.ActionKind = metrics.Kind(s.ToolCall)
			copied = s.Reply != nil && s.Reply.Copied || s.Reply == nil && copied
			r.IsCopiedContext = new(copied)
			if copied && s.Reply != nil && e.BranchTurn != nil {
				*e.BranchTurn++
			}
		}
		if err := n.call(&r, s); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if err := n.reply(&r, s.Reply); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if err := n.observation(&r, s); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if err := n.state(&r, s.State); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		n.rules(&r, s)
		r.Redacted = new(n.red.Take())
		rows = append(rows, r)
	}
	return rows, nil
}

// refused reports whether a step's call did not reach its tool.
func refused(s *schemas.Step) bool {
	return s.ToolCall != nil && s.Observation != nil && schemas.CallRefused(s.Observation.ErrorClass)
}

// rules records the leak and reward-hack rules that match a call. A call that was not executed
// matches none.
func (n *normaliser) rules(r *schemas.StepRow, s *schemas.Step) {
	if s.ToolCall == nil {
		return
	}
	r.LeakPatterns = []string{}
	if refused(s) {
		return
	}
	leaks, hacks := metrics.Leaks(s.ToolCall, r.Repo), metrics.Hacks(s.ToolCall)
	n.leaks, n.hacks = append(n.leaks, leaks...), append(n.hacks, hacks...)
	r.LeakPatterns = append(append(r.LeakPatterns, leaks...), hacks...)
	if len(leaks) > 0 && n.leaked < 0 {
		n.leaked = int(r.StepIndex)
	}
}

func (n *normaliser) model(e *schemas.EpisodeRow, s *schemas.Step) *string {
	for _, p := range n.ep.Agent.Phases {
		if p.Name == s.Phase && p.Model != "" {
			return &p.Model
		}
	}
	return &e.Model
}

func (n *normaliser) call(r *schemas.StepRow, s *schemas.Step) error {
	c := s.ToolCall
	if c == nil {
		return nil
	}
	args, valid := c.Arguments, c.Invalid == ""
	if !json.Valid(args) {
		valid = valid && len(args) == 0
		args = json.RawMessage("{}")
	}
	clean, changed, err := n.value(args)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Name, err)
	}
	if !changed {
		n.utf8(string(args)) // counts invalid bytes, which decoding has replaced
	}
	canonical, err := n.encode(clean)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Name, err)
	}
	r.ToolCallID, r.ToolName, r.ArgumentsJSON = &c.ID, new(n.text(c.Name)), &canonical
	r.ArgumentsValid, r.ArgumentsRepaired = &valid, &c.Repaired
	if c.Raw != "" {
		r.ArgumentsRaw = new(n.exact(c.Raw))
	}
	r.ToolCategory = new(metrics.CategoryOf(c))
	r.PDBCommand = nonZero(n.text(metrics.PDBCommand(c)))
	r.GoldEdit = &c.GoldEdit
	return nil
}

func (n *normaliser) reply(r *schemas.StepRow, p *schemas.Reply) error {
	if p == nil {
		return nil
	}
	r.Message = n.text(p.Message)
	r.Reasoning = nonZero(n.text(p.Reasoning))
	if len(p.ReasoningBlocks) > 0 {
		blocks, err := n.json(p.ReasoningBlocks)
		if err != nil {
			return fmt.Errorf("reasoning blocks: %w", err)
		}
		r.ReasoningBlocksJSON = &blocks
	}
	if p.Claims != nil {
		claims, err := n.canonical(p.Claims)
		if err != nil {
			return fmt.Errorf("claims: %w", err)
		}
		r.ClaimsJSON = &claims
	}
	if u := cmp.Or(p.Usage, p.Estimated); u != nil {
		r.PromptTokens, r.CompletionTokens = &u.Prompt, &u.Completion
	}
	if u := p.Usage; u != nil { // an estimate does not include these counts
		r.CachedTokens, r.ReasoningTokens = &u.Cached, &u.Reasoning
	}
	r.ToolSetSHA256 = nonZero(n.toolSet(p.ToolSet))
	r.CostUSD, r.LLMMS = p.CostUSD, p.LLMMillis
	r.LLMCallCount = new(int32(p.LLMCalls))
	if p.LLMCalls == 0 && !p.FromCache { // the policy wrote the text itself, so the columns of the model call stay null
		return nil
	}
	r.ModelStep, r.FinishReason, r.PromptSHA256 = nonZero(p.Model), nonZero(p.FinishReason), nonZero(p.PromptSHA256)
	r.LLMRetries = new(int32(p.Retries))
	r.PromptMessages = nonZero(int32(p.PromptCount))
	r.UsageSource = new("absent")
	switch {
	case p.Usage != nil:
		r.UsageSource = new("reported")
	case p.Estimated != nil:
		r.UsageSource = new("estimated")
	}
	r.RequestSHA256, r.ResponseSHA256 = nonZero(p.RequestSHA256), nonZero(p.ResponseSHA256)
	return n.context(r, p.Context)
}

// context fills the columns about how the prompt was built from earlier rows.
func (n *normaliser) context(r *schemas.StepRow, op *schemas.ContextOp) error {
	if op == nil {
		r.ContextOp = new(schemas.ContextNone)
		return nil
	}
	text, err := n.canonical(op)
	if err != nil {
		return fmt.Errorf("context: %w", err)
	}
	r.ContextOp, r.ContextOpJSON = new(op.Kind()), &text
	return nil
}

func (n *normaliser) observation(r *schemas.StepRow, s *schemas.Step) error {
	if len(s.Triggered) > 0 {
		list := make([]map[string]string, 0, len(s.Triggered))
		for _, o := range s.Triggered {
			list = append(list, map[string]string{"source": o.Source, "text": head(n.text(o.Text), schemas.MaxObservation)})
		}
		b, err := schemas.CanonicalJSON(list)
		if err != nil {
			return err
		}
		r.TriggeredJSON = new(string(b))
	}
	o := s.Observation
	if o == nil {
		r.FormatError = n.formatError(s, "")
		return nil
	}
	shown := n.text(o.Text)
	full := shown
	if o.FullText != "" {
		full = n.text(o.FullText)
	}
	kept := head(shown, schemas.MaxObservation)
	r.Observation, r.ObservationSource = &kept, new(n.text(o.Source))
	// The hash is that of the whole text, which is in the blob if there is one. The size is that of
	// the complete output of the program, even if the output was too large to keep.
	r.ObservationBytes = new(int64(len(full)))
	if o.Truncated {
		r.ObservationBytes = new(max(o.FullBytes, int64(len(full))))
	}
	r.ObservationTruncated = new(o.Truncated || len(kept) < len(shown))
	r.ObservationSHA256 = new(schemas.HashBytes([]byte(full)))
	if full != kept {
		n.blob(full, "text/plain")
	}
	r.IsError, r.ErrorClass = &o.IsError, nonZero(o.ErrorClass)
	r.FormatError = n.formatError(s, o.ErrorClass)
	if o.ExitCode != nil {
		r.ExitCode = new(int32(*o.ExitCode))
	}
	r.Targets = n.texts(o.Targets)
	if refused(s) {
		r.ActionKind = metrics.None
	}
	return nil
}

// formatError reports whether a reply has no call, or one that cannot be parsed. It returns nil for
// steps of other sources.
func (n *normaliser) formatError(s *schemas.Step, class string) *bool {
	if s.Source != "agent" {
		return nil
	}
	switch class {
	case schemas.ErrNoToolCall, schemas.ErrCallAsText, schemas.ErrCutOff:
		return new(true)
	}
	return new(s.ToolCall != nil && s.ToolCall.Invalid != "")
}

func (n *normaliser) state(r *schemas.StepRow, s *schemas.EnvState) error {
	if s == nil {
		return nil
	}
	r.ScoreAfter = score(s)
	if s.TestsPassed != nil {
		r.TestsPassed = new(int32(*s.TestsPassed))
	}
	if s.TestsFailed != nil {
		r.TestsFailed = new(int32(*s.TestsFailed))
	}
	points := "[]"
	if len(s.Breakpoints) > 0 {
		var err error
		if points, err = n.canonical(s.Breakpoints); err != nil {
			return err
		}
	}
	r.BreakpointsJSON = &points
	r.WorkspaceSHA256 = treeID(s.WorkspaceSHA)
	if r.FilesChanged = n.texts(s.FilesChanged); r.FilesChanged == nil && r.ToolCategory != nil {
		switch *r.ToolCategory { // these tools report every file that they change; a program may not
		case "view", "listdir", "grep", "edit", "submit", "handover":
			r.FilesChanged = []string{}
		}
	}
	r.DebuggerEvent = nonZero(s.DebuggerEvent)
	if f := s.Frame; f != nil {
		r.DebuggerEvent = nonZero(cmp.Or(f.Event, s.DebuggerEvent))
		if f.File != "" {
			r.FrameFile, r.FrameLine, r.FrameFunction = new(n.text(f.File)), new(int32(f.Line)), new(n.text(f.Function))
		}
	}
	return nil
}
