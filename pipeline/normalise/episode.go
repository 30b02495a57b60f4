package normalise

import (
	"cmp"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// episode returns the episode row, without the columns that derive and countTokens fill.
func (n *normaliser) episode() (schemas.EpisodeRow, error) {
	ep, job := n.ep, n.ep.Job
	stage := sinks.StagedKey(job.RunID, job.EpisodeID)
	isolation, err := n.canonical(ep.EnvKey)
	if err != nil {
		return schemas.EpisodeRow{}, err
	}
	e := schemas.EpisodeRow{
		EpisodeID: job.EpisodeID, RunID: job.RunID, GroupID: job.GroupID, Attempt: int32(job.Attempt), Seed: &job.Seed,
		SchemaVersion: schemas.SchemaVersion, CreatedAt: micro(ep.Started), EndedAt: new(micro(ep.Ended)),
		ProducerVersion: nonZero(n.cfg.Producer), PipelineRunID: &job.RunID, StagePath: &stage,
		TaskKey: &job.TaskID, AgentKey: &job.AgentKey, EnvKey: &isolation,
		Harness: "tracesmith", HarnessVersion: nonZero(n.cfg.Producer), HarnessCommit: nonZero(n.cfg.Commit),
		ContextTrimmed: new(false), Invalidated: new(false),
		WallMS: new(ep.Ended.Sub(ep.Started).Milliseconds()), QueueMS: &ep.QueueMS,
		Outcome: new(schemas.OutcomeOf(ep.ExitReason, ep.Verdict)), ExitReason: ep.ExitReason,
		TerminationClass: "infra", // unless the exit reason is known
		ErrorClass:       nonZero(ep.ErrorClass), ErrorMessage: nonZero(n.text(ep.ErrorMessage)),
	}
	if exit, ok := schemas.Exits[ep.ExitReason]; ok {
		e.TerminationClass = exit.Class
	}
	if n.ep.Compared > 0 {
		e.NDiverged = new(int32(len(n.ep.Diverged)))
	}
	if len(n.ep.Diverged) > 0 {
		e.FirstDivergedStep = new(int32(n.ep.Diverged[0]))
	}
	n.task(&e)
	if err := n.agent(&e); err != nil {
		return e, err
	}
	n.verdict(&e)
	n.patch(&e)
	n.addCosts(&e)
	return e, nil
}

func (n *normaliser) task(e *schemas.EpisodeRow) {
	t := n.ep.Task
	e.TaskSource, e.TaskRevision, e.InstanceID = t.Source, nonZero(t.Revision), t.InstanceID
	e.Repo = provenance.Upstream(t)
	e.SplitGroup, e.Split = &e.Repo, provenance.SplitOf(t, cmp.Or(n.cfg.SplitSalt, provenance.Salt))
	source := t.RepoSource
	if source == "" && t.Repo != e.Repo {
		source = t.Repo
	}
	e.RepoSource, e.BaseCommit, e.Language = nonZero(n.text(provenance.Source(source))), nonZero(t.BaseCommit), nonZero(t.Language)
	e.BugKind, e.TestVisibility = nonZero(t.BugKind), nonZero(t.Visibility)
	n.provenance(e)
	if t.Difficulty != nil {
		difficulty(e, *t.Difficulty)
	}
	if !t.CreatedAt.IsZero() {
		e.TaskCreatedAt = new(micro(t.CreatedAt))
	}
	problem := n.text(t.Instructions)
	e.ProblemStatement, e.ProblemSHA256 = &problem, new(schemas.HashBytes([]byte(problem)))
	e.EnvImage, e.EnvImageDigest = nonZero(n.ep.EnvKey.Image), nonZero(n.ep.EnvKey.ImageDigest)
	e.HistoryStripped = new(true) // a Tree never has history
}

// difficulty fills the columns about the difficulty of the task.
func difficulty(e *schemas.EpisodeRow, d schemas.Difficulty) {
	e.Difficulty, e.GoldDifficulty, e.GoldFunctionShown = nonZero(d.Level), nonZero(d.GoldLevel), d.GoldFunctionShown
	for _, f := range []struct {
		from *int
		to   **int32
	}{
		{d.TracebackFunctions, &e.TracebackFunctions}, {d.ExecutedFunctions, &e.ExecutedFunctions}, {d.ExecutedFiles, &e.ExecutedFiles},
		{d.GoldVisible, &e.GoldVisible}, {d.GoldSymptomDistance, &e.GoldSymptomDistance}, {d.GoldOchiaiRank, &e.GoldOchiaiRank},
	} {
		if f.from != nil {
			*f.to = new(int32(*f.from))
		}
	}
}

// provenance fills the license, and the benchmarks that may contain the task. A repository name
// that was derived from the task's ID says nothing about benchmarks, except for built-in tasks.
func (n *normaliser) provenance(e *schemas.EpisodeRow) {
	t := n.ep.Task
	license := t.License
	if license == "" && t.Origin != nil {
		license = t.Origin.License
	}
	if license != "" {
		e.LicenseSPDX, e.LicenseSource = &license, new(cmp.Or(n.text(t.LicenseFile), "task"))
	}
	repo := t.Repo
	if t.Origin != nil && t.Origin.UpstreamRepo != "" {
		repo = t.Origin.UpstreamRepo
	}
	known := repo != "" && (t.Source == "builtin" || repo != t.Source+"/"+t.InstanceID)
	e.Contamination = provenance.Contamination(t.Source, t.InstanceID, repo, known)
}

func (n *normaliser) agent(e *schemas.EpisodeRow) error {
	a := n.ep.Agent
	e.AgentName, e.AgentVersion, e.Policy, e.GoldUsed = a.Name, nonZero(a.Version), a.Policy, a.GoldUsed
	e.ParentEpisodeID = nonZero(a.Parent)
	if a.Parent != "" {
		e.BranchTurn = new(int32(0))
	}
	e.Model = cmp.Or(a.Model, "none")
	for _, p := range a.Phases {
		e.Phases, e.PhaseModels = append(e.Phases, p.Name), append(e.PhaseModels, cmp.Or(p.Model, e.Model))
	}
	e.ModelProvider, e.ToolCallStyle = nonZero(a.Provider), nonZero(a.ToolCallStyle)
	for _, f := range []struct {
		text string
		to   **string
	}{{a.SamplingJSON, &e.SamplingJSON}, {a.ConfigJSON, &e.ConfigJSON}} {
		if f.text == "" {
			continue
		}
		clean, err := n.json([]byte(f.text))
		if err != nil {
			return err
		}
		*f.to = &clean
	}
	if e.ConfigJSON != nil {
		e.ConfigSHA256 = new(schemas.HashBytes([]byte(*e.ConfigJSON)))
	}
	e.ToolSetSHA256 = new(schemas.Hash(n.tools))
	for _, t := range n.ep.Tools {
		e.ToolNames = append(e.ToolNames, t.Name)
	}
	for _, s := range n.ep.Steps {
		if s.Source == "system" {
			e.SystemPromptSHA256 = new(schemas.HashBytes([]byte(n.text(s.Text))))
			break
		}
	}
	return nil
}

func (n *normaliser) verdict(e *schemas.EpisodeRow) {
	v := n.ep.Verdict
	e.Resolved, e.VerifyStatus, e.VerifyMethod = v.Resolved, v.Status, nonZero(v.Method)
	e.VerifyStatus = cmp.Or(e.VerifyStatus, schemas.VerifyNotRun)
	if v.Log != "" {
		e.VerifyLogSHA256 = new(n.blob(n.text(v.Log), "text/plain"))
	}
	if e.VerifyStatus != schemas.VerifiedPass {
		reason, _, _ := strings.Cut(strings.TrimSpace(n.text(v.Reason)), "\n")
		e.VerifyReason = nonZero(reason)
	}
	for _, w := range v.Warnings {
		e.VerifyWarnings = append(e.VerifyWarnings, n.text(w))
	}
	e.VerifiedWorkspaceSHA256 = treeID(v.FinalSHA)
	if v.FinalSHA != "" && n.ep.FinalSHA != "" {
		e.VerdictStale = new(v.FinalSHA != n.ep.FinalSHA)
	}
	if v.Resolved != nil {
		e.Reward = new(map[bool]float64{true: 1}[*v.Resolved])
		e.F2PPassed, e.F2PTotal = new(int32(v.F2PPassed)), new(int32(v.F2PTotal))
		e.P2PPassed, e.P2PTotal = new(int32(v.P2PPassed)), new(int32(v.P2PTotal))
		e.TestsParsed = new(int32(v.Parsed))
	}
	for _, s := range n.ep.Steps {
		if s.State != nil {
			e.Score, e.MaxScore = score(s.State), s.State.MaxScore
		}
	}
}

// noPatch reports whether the episode has no patch because the final workspace could not be read.
// If the agent changed nothing, the episode has an empty patch instead.
func (n *normaliser) noPatch() bool { return len(n.ep.Patch) == 0 && n.ep.FinalSHA == "" }

// patch fills the columns of the patch, which keep its exact bytes except for secrets. A long patch
// goes to a blob.
func (n *normaliser) patch(e *schemas.EpisodeRow) {
	for _, file := range n.ep.LeftOut {
		e.PatchLeftOut = append(e.PatchLeftOut, n.text(file.Path))
	}
	if n.noPatch() {
		return
	}
	text := n.exact(string(n.ep.Patch))
	e.PatchBytes, e.PatchSHA256 = new(int64(len(text))), new(schemas.HashBytes([]byte(text)))
	if len(text) <= maxPatch {
		e.Patch = &text
	} else {
		n.blob(text, "text/x-diff")
	}
}

// score returns the score in a state, or nil before the first evaluation.
func score(s *schemas.EnvState) *float64 {
	if s.EvalPassed == nil {
		return nil
	}
	return &s.Score
}

// addCosts adds up tokens, cost and latency of the replies. A sum is null unless all its parts are
// known. If no model acts, the cost is 0 and the other columns are null.
func (n *normaliser) addCosts(e *schemas.EpisodeRow) {
	var usage schemas.Usage
	var cost float64
	var llm, env, longest int64
	var retries int32
	asked, withUsage, priced, timed := 0, 0, 0, 0 // numbers of replies
	for _, s := range n.ep.Steps {
		env += s.EnvMillis
		p := s.Reply
		if p == nil {
			continue
		}
		retries += int32(p.Retries)
		if p.LLMCalls == 0 && !p.FromCache {
			continue
		}
		asked++
		if u := p.Usage; u != nil {
			withUsage++
			usage.Prompt += u.Prompt
			usage.Completion += u.Completion
			usage.Cached += u.Cached
			usage.Reasoning += u.Reasoning
			longest = max(longest, u.Prompt)
		}
		if p.CostUSD != nil {
			priced++
			cost += *p.CostUSD
		}
		if p.LLMMillis != nil {
			timed++
			llm += *p.LLMMillis
		}
	}
	e.EnvMS = &env
	if priced == asked {
		e.CostUSD = &cost
	}
	if asked == 0 && n.ep.Agent.Model == "" {
		return
	}
	e.NRetries = &retries
	if asked > 0 && priced == asked {
		e.PriceTable = nonZero(n.cfg.Prices)
	}
	if withUsage == asked {
		e.PromptTokens, e.CompletionTokens, e.CachedTokens, e.ReasoningTokens = &usage.Prompt, &usage.Completion, &usage.Cached, &usage.Reasoning
		e.MaxPromptTokens = &longest
	}
	if timed == asked {
		e.LLMMS = &llm
	}
}
