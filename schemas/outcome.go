package schemas

// Values of exit_reason: how the run loop ended.
const (
	ExitSubmitted       = "submitted"
	ExitEnvDone         = "env_done"
	ExitResolvedAtReset = "resolved_at_reset"
	ExitMaxSteps        = "max_steps"
	ExitMaxContext      = "max_context"
	ExitMaxCost         = "max_cost"
	ExitWallTimeout     = "wall_timeout"
	ExitLLMTimeout      = "llm_timeout"
	ExitNoToolCall      = "no_tool_call"
	ExitBadCalls        = "bad_calls" // too many replies in a row without a call that can be executed; the last one had calls
	ExitCutOff          = "cut_off"   // the same, and the last one reached its token limit
	ExitStuck           = "stuck"
	ExitGaveUp          = "gave_up"     // the policy had nothing left to do
	ExitHandedOver      = "handed_over" // a demonstration ends with what it hands over
	ExitNoEvidence      = "no_evidence" // in older rows, a failed demonstration: the program did not stop in a call that the failing test makes
	ExitNoHandover      = "no_handover" // a seeker used up its budget before it handed over a pack
	ExitKilledSandbox   = "killed_sandbox"
	ExitBadWorkspace    = "bad_workspace" // the agent left a workspace that no patch can describe
	ExitRefused         = "refused"       // the provider's policy forbids an answer to the conversation
	ExitLLMError        = "llm_error"
	ExitEnvError        = "env_error"
	ExitSandboxError    = "sandbox_error"
	ExitCancelled       = "cancelled"
)

// The outcomes. Every episode has exactly one.
const (
	OutcomeResolved   = "resolved"
	OutcomeUnresolved = "unresolved"
	OutcomeUnverified = "unverified" // no verifier judged the result: an import, or a task without a verifier
	OutcomeLimit      = "limit"
	OutcomeAgentError = "agent_error"
	OutcomeInfra      = "infra"
	OutcomeCancelled  = "cancelled"
)

// Values of the column ending.
const (
	EndingEdit       = "edit"
	EndingGoldEdit   = "gold_edit"
	EndingConclusion = "conclusion"
	EndingNone       = "none"
)

// Outcomes lists the outcomes in the order in which the ledger prints them.
var Outcomes = []string{
	OutcomeResolved, OutcomeUnresolved, OutcomeUnverified, OutcomeLimit, OutcomeAgentError, OutcomeInfra, OutcomeCancelled,
}

// Exit holds the termination class of an exit reason, and the outcome of the episode
// unless a verdict decides it.
type Exit struct {
	Class   string // termination_class: agent, budget, infra, operator
	Outcome string
}

// Exits maps every exit reason to its class and default outcome. A verdict takes
// precedence over the default: see OutcomeOf.
var Exits = map[string]Exit{
	ExitSubmitted:       {"agent", OutcomeUnresolved},
	ExitEnvDone:         {"agent", OutcomeUnresolved},
	ExitResolvedAtReset: {"agent", OutcomeUnresolved},
	ExitGaveUp:          {"agent", OutcomeUnresolved},
	ExitHandedOver:      {"agent", OutcomeUnresolved},
	ExitNoToolCall:      {"agent", OutcomeAgentError},
	ExitBadCalls:        {"agent", OutcomeAgentError},
	ExitCutOff:          {"agent", OutcomeAgentError},
	ExitStuck:           {"agent", OutcomeAgentError},
	ExitNoEvidence:      {"agent", OutcomeAgentError},
	ExitKilledSandbox:   {"agent", OutcomeAgentError},
	ExitBadWorkspace:    {"agent", OutcomeAgentError},
	ExitRefused:         {"agent", OutcomeAgentError},
	ExitMaxSteps:        {"budget", OutcomeLimit},
	ExitMaxContext:      {"budget", OutcomeLimit},
	ExitNoHandover:      {"budget", OutcomeLimit},
	ExitMaxCost:         {"budget", OutcomeLimit},
	ExitWallTimeout:     {"budget", OutcomeLimit},
	ExitLLMTimeout:      {"infra", OutcomeInfra},
	ExitLLMError:        {"infra", OutcomeInfra},
	ExitEnvError:        {"infra", OutcomeInfra},
	ExitSandboxError:    {"infra", OutcomeInfra},
	ExitCancelled:       {"operator", OutcomeCancelled},
}

// OutcomeOf returns the outcome of an episode. A passing verdict takes precedence
// over every exit reason except those of the classes infra and operator. A verifier
// error counts as infra. Without a verdict, an episode is unverified, however it ended, except if
// the agent left a workspace that no patch can describe and so prevented the verdict.
func OutcomeOf(exitReason string, v Verdict) string {
	e, known := Exits[exitReason]
	if !known {
		return OutcomeInfra
	}
	switch {
	case e.Class == "infra" || e.Class == "operator":
		return e.Outcome
	case v.Status == VerifyError:
		return OutcomeInfra
	case v.Resolved == nil && exitReason != ExitBadWorkspace:
		return OutcomeUnverified
	case v.Resolved != nil && *v.Resolved:
		return OutcomeResolved
	}
	return e.Outcome
}

// OutcomeText returns the outcome for readers. It marks an episode whose policy could see the gold
// patch, because that is not an agent's success.
func (e *EpisodeRow) OutcomeText() string {
	switch {
	case !e.GoldUsed || Value(e.Outcome) != OutcomeResolved:
		return Value(e.Outcome)
	case e.Policy == "oracle" && Value(e.Ending) == EndingEdit:
		return "resolved (derived)"
	}
	return "resolved (reference fix)"
}
