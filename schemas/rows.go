package schemas

import (
	"time"
	"unicode/utf8"
)

// The row structs define the columns of the published tables: field
// order, column name and type. A pointer is a nullable column and nil means
// "not known or not applicable", never zero or empty; a nil list is null, and an
// empty list means that there is nothing. The col tag holds the column name;
// "required" columns must be filled in every published row. Timestamps are
// microseconds, UTC. Hashes are hex SHA-256, except for workspaces, which are
// identified by their Git tree ("git-tree:" and the tree id, without caches);
// env_key is the canonical JSON of EnvKey.

// EpisodeRow is one row of table episodes: one per attempt. Sort key: split,
// repo, instance_id, episode_id. columns_episodes.go describes the columns.
type EpisodeRow struct {
	// Identity and lineage.
	EpisodeID       string     `col:"episode_id,required" json:"episode_id"`
	RunID           string     `col:"run_id,required" json:"run_id"`
	SessionID       *string    `col:"session_id" json:"session_id,omitempty"`
	GroupID         string     `col:"group_id,required" json:"group_id"`
	Attempt         int32      `col:"attempt,required" json:"attempt"`
	ParentEpisodeID *string    `col:"parent_episode_id" json:"parent_episode_id,omitempty"`
	Seed            *int64     `col:"seed" json:"seed,omitempty"`
	SchemaVersion   string     `col:"schema_version,required" json:"schema_version"`
	CreatedAt       time.Time  `col:"created_at,required" json:"created_at"`
	EndedAt         *time.Time `col:"ended_at" json:"ended_at,omitempty"`
	ProducerVersion *string    `col:"producer_version" json:"producer_version,omitempty"`
	PipelineRunID   *string    `col:"pipeline_run_id" json:"pipeline_run_id,omitempty"`
	StagePath       *string    `col:"stage_path" json:"stage_path,omitempty"`
	TaskKey         *string    `col:"task_key" json:"task_key,omitempty"`
	AgentKey        *string    `col:"agent_key" json:"agent_key,omitempty"`
	EnvKey          *string    `col:"env_key" json:"env_key,omitempty"`

	// Task.
	TaskSource       string     `col:"task_source,required" json:"task_source"`
	TaskRevision     *string    `col:"task_revision" json:"task_revision,omitempty"`
	InstanceID       string     `col:"instance_id,required" json:"instance_id"`
	Repo             string     `col:"repo,required" json:"repo"`
	RepoSource       *string    `col:"repo_source" json:"repo_source,omitempty"`
	BaseCommit       *string    `col:"base_commit" json:"base_commit,omitempty"`
	SplitGroup       *string    `col:"split_group" json:"split_group,omitempty"`
	Split            string     `col:"split,required" json:"split"`
	Language         *string    `col:"language" json:"language,omitempty"`
	LicenseSPDX      *string    `col:"license_spdx" json:"license_spdx,omitempty"`
	TaskCreatedAt    *time.Time `col:"task_created_at" json:"task_created_at,omitempty"`
	ProblemStatement *string    `col:"problem_statement" json:"problem_statement,omitempty"`
	ProblemSHA256    *string    `col:"problem_sha256" json:"problem_sha256,omitempty"`
	BugKind          *string    `col:"bug_kind" json:"bug_kind,omitempty"`
	EnvImage         *string    `col:"env_image" json:"env_image,omitempty"`
	EnvImageDigest   *string    `col:"env_image_digest" json:"env_image_digest,omitempty"`
	HistoryStripped  *bool      `col:"history_stripped" json:"history_stripped,omitempty"`

	// Agent and model.
	Harness            string   `col:"harness,required" json:"harness"`
	HarnessVersion     *string  `col:"harness_version" json:"harness_version,omitempty"`
	HarnessCommit      *string  `col:"harness_commit" json:"harness_commit,omitempty"`
	AgentName          string   `col:"agent_name,required" json:"agent_name"`
	AgentVersion       *string  `col:"agent_version" json:"agent_version,omitempty"`
	ConfigSHA256       *string  `col:"config_sha256" json:"config_sha256,omitempty"`
	ConfigJSON         *string  `col:"config_json" json:"config_json,omitempty"`
	Model              string   `col:"model,required" json:"model"`
	ModelProvider      *string  `col:"model_provider" json:"model_provider,omitempty"`
	SamplingJSON       *string  `col:"sampling_json" json:"sampling_json,omitempty"`
	ToolSetSHA256      *string  `col:"tool_set_sha256" json:"tool_set_sha256,omitempty"`
	ToolNames          []string `col:"tool_names" json:"tool_names,omitzero"`
	SystemPromptSHA256 *string  `col:"system_prompt_sha256" json:"system_prompt_sha256,omitempty"`
	ToolCallStyle      *string  `col:"tool_call_style" json:"tool_call_style,omitempty"`
	Policy             string   `col:"policy,required" json:"policy"`
	GoldUsed           bool     `col:"gold_used,required" json:"gold_used"`
	Outcome            *string  `col:"outcome" json:"outcome,omitempty"`

	// Outcome.
	Resolved                *bool    `col:"resolved" json:"resolved"`
	VerifyStatus            string   `col:"verify_status,required" json:"verify_status"`
	VerifyMethod            *string  `col:"verify_method" json:"verify_method,omitempty"`
	VerifyReason            *string  `col:"verify_reason" json:"verify_reason,omitempty"`
	VerifyLogSHA256         *string  `col:"verify_log_sha256" json:"verify_log_sha256,omitempty"`
	VerifiedWorkspaceSHA256 *string  `col:"verified_workspace_sha256" json:"verified_workspace_sha256,omitempty"`
	VerdictStale            *bool    `col:"verdict_stale" json:"verdict_stale,omitempty"`
	TestVisibility          *string  `col:"test_visibility" json:"test_visibility,omitempty"`
	Reward                  *float64 `col:"reward" json:"reward,omitempty"`
	Score                   *float64 `col:"score" json:"score,omitempty"`
	MaxScore                *float64 `col:"max_score" json:"max_score,omitempty"`
	F2PPassed               *int32   `col:"f2p_passed" json:"f2p_passed,omitempty"`
	F2PTotal                *int32   `col:"f2p_total" json:"f2p_total,omitempty"`
	P2PPassed               *int32   `col:"p2p_passed" json:"p2p_passed,omitempty"`
	P2PTotal                *int32   `col:"p2p_total" json:"p2p_total,omitempty"`
	TestsParsed             *int32   `col:"tests_parsed" json:"tests_parsed,omitempty"`
	ExitReason              string   `col:"exit_reason,required" json:"exit_reason"`
	TerminationClass        string   `col:"termination_class,required" json:"termination_class"`
	ErrorClass              *string  `col:"error_class" json:"error_class,omitempty"`
	ErrorMessage            *string  `col:"error_message" json:"error_message,omitempty"`
	ResolvedAtStep          *int32   `col:"resolved_at_step" json:"resolved_at_step,omitempty"`
	Patch                   *string  `col:"patch" json:"patch,omitempty"`
	PatchSHA256             *string  `col:"patch_sha256" json:"patch_sha256,omitempty"`
	PatchBytes              *int64   `col:"patch_bytes" json:"patch_bytes,omitempty"`
	PatchFiles              []string `col:"patch_files" json:"patch_files,omitzero"`
	PatchAdded              *int32   `col:"patch_added" json:"patch_added,omitempty"`
	PatchDeleted            *int32   `col:"patch_deleted" json:"patch_deleted,omitempty"`
	TestPatchFiles          []string `col:"test_patch_files" json:"test_patch_files,omitzero"`

	// Cost and size.
	NSteps           int32    `col:"n_steps,required" json:"n_steps"`
	NTurns           int32    `col:"n_turns,required" json:"n_turns"`
	NToolCalls       *int32   `col:"n_tool_calls" json:"n_tool_calls,omitempty"`
	NSeek            *int32   `col:"n_seek" json:"n_seek,omitempty"`
	NEdit            *int32   `col:"n_edit" json:"n_edit,omitempty"`
	NExec            *int32   `col:"n_exec" json:"n_exec,omitempty"`
	NVerify          *int32   `col:"n_verify" json:"n_verify,omitempty"`
	NPDB             *int32   `col:"n_pdb" json:"n_pdb,omitempty"`
	NErrors          *int32   `col:"n_errors" json:"n_errors,omitempty"`
	NFormatErrors    *int32   `col:"n_format_errors" json:"n_format_errors,omitempty"`
	NRetries         *int32   `col:"n_retries" json:"n_retries,omitempty"`
	PromptTokens     *int64   `col:"prompt_tokens" json:"prompt_tokens,omitempty"`
	CompletionTokens *int64   `col:"completion_tokens" json:"completion_tokens,omitempty"`
	CachedTokens     *int64   `col:"cached_tokens" json:"cached_tokens,omitempty"`
	ReasoningTokens  *int64   `col:"reasoning_tokens" json:"reasoning_tokens,omitempty"`
	MaxPromptTokens  *int64   `col:"max_prompt_tokens" json:"max_prompt_tokens,omitempty"`
	CostUSD          *float64 `col:"cost_usd" json:"cost_usd,omitempty"`
	PriceTable       *string  `col:"price_table" json:"price_table,omitempty"`
	WallMS           *int64   `col:"wall_ms" json:"wall_ms,omitempty"`
	LLMMS            *int64   `col:"llm_ms" json:"llm_ms,omitempty"`
	EnvMS            *int64   `col:"env_ms" json:"env_ms,omitempty"`
	QueueMS          *int64   `col:"queue_ms" json:"queue_ms,omitempty"`
	SFTTokensJSON    *string  `col:"sft_tokens_json" json:"sft_tokens_json,omitempty"`
	ContextTrimmed   *bool    `col:"context_trimmed" json:"context_trimmed,omitempty"`

	// Behavior and quality.
	FirstEditTurn       *int32   `col:"first_edit_turn" json:"first_edit_turn,omitempty"`
	NExploreBeforeEdit  *int32   `col:"n_explore_before_edit" json:"n_explore_before_edit,omitempty"`
	NTestRuns           *int32   `col:"n_test_runs" json:"n_test_runs,omitempty"`
	NBacktracks         *int32   `col:"n_backtracks" json:"n_backtracks,omitempty"`
	Recovered           *bool    `col:"recovered" json:"recovered,omitempty"`
	UsedDebugger        *bool    `col:"used_debugger" json:"used_debugger,omitempty"`
	DebugToEditPatterns *int32   `col:"debug_to_edit_patterns" json:"debug_to_edit_patterns,omitempty"`
	SatisfiedCriteria   []string `col:"satisfied_criteria,required" json:"satisfied_criteria"`
	NRepeats            *int32   `col:"n_repeats" json:"n_repeats,omitempty"`
	MaxRepeatRun        *int32   `col:"max_repeat_run" json:"max_repeat_run,omitempty"`
	LoopScore           *float64 `col:"loop_score" json:"loop_score,omitempty"`
	LeakGitHistory      *bool    `col:"leak_git_history" json:"leak_git_history,omitempty"`
	LeakNetwork         *bool    `col:"leak_network" json:"leak_network,omitempty"`
	EditsTests          *bool    `col:"edits_tests" json:"edits_tests,omitempty"`
	LeakPatterns        []string `col:"leak_patterns" json:"leak_patterns,omitzero"`
	GoldPatchSimilarity *float64 `col:"gold_patch_similarity" json:"gold_patch_similarity,omitempty"`
	GoldFileRecall      *float64 `col:"gold_file_recall" json:"gold_file_recall,omitempty"`
	GoldFilePrecision   *float64 `col:"gold_file_precision" json:"gold_file_precision,omitempty"`
	GoldFuncRecall      *float64 `col:"gold_func_recall" json:"gold_func_recall,omitempty"`
	GoldEditFileRecall  *float64 `col:"gold_edit_file_recall" json:"gold_edit_file_recall,omitempty"`
	WrongFactRatio      *float64 `col:"wrong_fact_ratio" json:"wrong_fact_ratio,omitempty"`
	Contamination       []string `col:"contamination" json:"contamination,omitzero"`
	RedactionsJSON      *string  `col:"redactions_json" json:"redactions_json,omitempty"`
	InvalidUTF8         *int32   `col:"invalid_utf8" json:"invalid_utf8,omitempty"`
	ContentSHA256       *string  `col:"content_sha256" json:"content_sha256,omitempty"`
	MinhashB64          *string  `col:"minhash_b64" json:"minhash_b64,omitempty"`
	Invalidated         *bool    `col:"invalidated" json:"invalidated,omitempty"`
	InvalidationReason  *string  `col:"invalidation_reason" json:"invalidation_reason,omitempty"`

	// Since 1.2.0.
	Phases            []string `col:"phases" json:"phases,omitzero"`
	PhaseModels       []string `col:"phase_models" json:"phase_models,omitzero"`
	PromptsRebuild    *bool    `col:"prompts_rebuild" json:"prompts_rebuild,omitempty"`
	NDiverged         *int32   `col:"n_diverged" json:"n_diverged,omitempty"`
	FirstDivergedStep *int32   `col:"first_diverged_step" json:"first_diverged_step,omitempty"`

	// Since 1.3.0.
	LicenseSource *string  `col:"license_source" json:"license_source,omitempty"`
	SFTTokens     *int64   `col:"sft_tokens" json:"sft_tokens,omitempty"`
	SFTTokenizer  *string  `col:"sft_tokenizer" json:"sft_tokenizer,omitempty"`
	BranchTurn    *int32   `col:"branch_turn" json:"branch_turn,omitempty"`
	HackPatterns  []string `col:"hack_patterns" json:"hack_patterns,omitzero"`
	RewardHack    *bool    `col:"reward_hack" json:"reward_hack,omitempty"`

	// Since 2.0.0.
	PatchLeftOut   []string `col:"patch_left_out" json:"patch_left_out,omitzero"`
	VerifyWarnings []string `col:"verify_warnings" json:"verify_warnings,omitzero"`

	// Since 2.1.0.
	Difficulty          *string `col:"difficulty" json:"difficulty,omitempty"`
	TracebackFunctions  *int32  `col:"traceback_functions" json:"traceback_functions,omitempty"`
	ExecutedFunctions   *int32  `col:"executed_functions" json:"executed_functions,omitempty"`
	ExecutedFiles       *int32  `col:"executed_files" json:"executed_files,omitempty"`
	GoldDifficulty      *string `col:"gold_difficulty" json:"gold_difficulty,omitempty"`
	GoldVisible         *int32  `col:"gold_visible" json:"gold_visible,omitempty"`
	GoldFunctionShown   *bool   `col:"gold_function_shown" json:"gold_function_shown,omitempty"`
	GoldSymptomDistance *int32  `col:"gold_symptom_distance" json:"gold_symptom_distance,omitempty"`
	GoldOchiaiRank      *int32  `col:"gold_ochiai_rank" json:"gold_ochiai_rank,omitempty"`

	// Since 2.2.0.
	Redundancy             *float64 `col:"redundancy" json:"redundancy,omitempty"`
	BreakpointValidity     *float64 `col:"breakpoint_validity" json:"breakpoint_validity,omitempty"`
	BreakpointHitRate      *float64 `col:"breakpoint_hit_rate" json:"breakpoint_hit_rate,omitempty"`
	DeadInspections        *float64 `col:"dead_inspections" json:"dead_inspections,omitempty"`
	InvalidCallRate        *float64 `col:"invalid_call_rate" json:"invalid_call_rate,omitempty"`
	MaxCommandRun          *int32   `col:"max_command_run" json:"max_command_run,omitempty"`
	MaxCallRun             *int32   `col:"max_call_run" json:"max_call_run,omitempty"`
	NBlindEdits            *int32   `col:"n_blind_edits" json:"n_blind_edits,omitempty"`
	PackTokens             *int64   `col:"pack_tokens" json:"pack_tokens,omitempty"`
	GoldOperator           *string  `col:"gold_operator" json:"gold_operator,omitempty"`
	GoldLineRecall         *float64 `col:"gold_line_recall" json:"gold_line_recall,omitempty"`
	GoldLinePrecision      *float64 `col:"gold_line_precision" json:"gold_line_precision,omitempty"`
	GoldLineF05            *float64 `col:"gold_line_f05" json:"gold_line_f05,omitempty"`
	GoldFirstContact       *int32   `col:"gold_first_contact" json:"gold_first_contact,omitempty"`
	GoldRecallArea         *float64 `col:"gold_recall_area" json:"gold_recall_area,omitempty"`
	GoldEvidenceDrop       *float64 `col:"gold_evidence_drop" json:"gold_evidence_drop,omitempty"`
	GoldDeclaredFileF1     *float64 `col:"gold_declared_file_f1" json:"gold_declared_file_f1,omitempty"`
	GoldRootHit            *bool    `col:"gold_root_hit" json:"gold_root_hit,omitempty"`
	GoldRootLineHit        *bool    `col:"gold_root_line_hit" json:"gold_root_line_hit,omitempty"`
	GoldBreakpointsToRoot  *int32   `col:"gold_breakpoints_to_root" json:"gold_breakpoints_to_root,omitempty"`
	GoldBreakpointDistance *int32   `col:"gold_breakpoint_distance" json:"gold_breakpoint_distance,omitempty"`
	GoldUsefulSteps        *float64 `col:"gold_useful_steps" json:"gold_useful_steps,omitempty"`
	GoldPackRecall         *float64 `col:"gold_pack_recall" json:"gold_pack_recall,omitempty"`
	GoldPackPrecision      *float64 `col:"gold_pack_precision" json:"gold_pack_precision,omitempty"`
	GoldPackSufficient     *bool    `col:"gold_pack_sufficient" json:"gold_pack_sufficient,omitempty"`
	GoldSeekingJSON        *string  `col:"gold_seeking_json" json:"gold_seeking_json,omitempty"`

	// Since 2.3.0.
	NClaimsTrue             *int32   `col:"n_claims_true" json:"n_claims_true,omitempty"`
	NClaimsFalse            *int32   `col:"n_claims_false" json:"n_claims_false,omitempty"`
	NClaimsUnchecked        *int32   `col:"n_claims_unchecked" json:"n_claims_unchecked,omitempty"`
	FalseClaimShare         *float64 `col:"false_claim_share" json:"false_claim_share,omitempty"`
	GroundedShare           *float64 `col:"grounded_share" json:"grounded_share,omitempty"`
	NUnseen                 *int32   `col:"n_unseen" json:"n_unseen,omitempty"`
	SurpriseBits            *float64 `col:"surprise_bits" json:"surprise_bits,omitempty"`
	PaddingShare            *float64 `col:"padding_share" json:"padding_share,omitempty"`
	GoldEvidenceDiffers     *bool    `col:"gold_evidence_differs" json:"gold_evidence_differs,omitempty"`
	GoldValueRecall         *float64 `col:"gold_value_recall" json:"gold_value_recall,omitempty"`
	GoldInspectionPrecision *float64 `col:"gold_inspection_precision" json:"gold_inspection_precision,omitempty"`
	GoldCausalShare         *float64 `col:"gold_causal_share" json:"gold_causal_share,omitempty"`
	GoldCandidateBits       *float64 `col:"gold_candidate_bits" json:"gold_candidate_bits,omitempty"`
	GoldUnknownInspections  *float64 `col:"gold_unknown_inspections" json:"gold_unknown_inspections,omitempty"`
	NamesCause              *bool    `col:"names_cause" json:"names_cause,omitempty"`
	Ending                  *string  `col:"ending" json:"ending,omitempty"`
	GoldEvidencePossible    *bool    `col:"gold_evidence_possible" json:"gold_evidence_possible,omitempty"`
	ClaimedResolved         *bool    `col:"claimed_resolved" json:"claimed_resolved,omitempty"`
}

// StepRow is one row of table steps: one per event. Key: (episode_id,
// step_index). The model's text, tokens, cost and latency are only in the row
// with call_index 0, so plain sums are correct.
type StepRow struct {
	EpisodeID            string     `col:"episode_id,required" json:"episode_id"`
	StepIndex            int32      `col:"step_index,required" json:"step_index"`
	TurnIndex            *int32     `col:"turn_index" json:"turn_index,omitempty"`
	CallIndex            *int32     `col:"call_index" json:"call_index,omitempty"`
	Split                string     `col:"split,required" json:"split"`
	Repo                 string     `col:"repo,required" json:"repo"`
	InstanceID           string     `col:"instance_id,required" json:"instance_id"`
	RunID                *string    `col:"run_id" json:"run_id,omitempty"`
	Resolved             *bool      `col:"resolved" json:"resolved,omitempty"`
	TerminationClass     *string    `col:"termination_class" json:"termination_class,omitempty"`
	Model                *string    `col:"model" json:"model,omitempty"`
	Source               string     `col:"source,required" json:"source"`
	TS                   *time.Time `col:"ts" json:"ts,omitempty"`
	Message              string     `col:"message,required" json:"message"`
	Reasoning            *string    `col:"reasoning" json:"reasoning,omitempty"`
	ReasoningBlocksJSON  *string    `col:"reasoning_blocks_json" json:"reasoning_blocks_json,omitempty"`
	ToolCallID           *string    `col:"tool_call_id" json:"tool_call_id,omitempty"`
	ToolName             *string    `col:"tool_name" json:"tool_name,omitempty"`
	ArgumentsJSON        *string    `col:"arguments_json" json:"arguments_json,omitempty"`
	ArgumentsRaw         *string    `col:"arguments_raw" json:"arguments_raw,omitempty"`
	ArgumentsValid       *bool      `col:"arguments_valid" json:"arguments_valid,omitempty"`
	ToolCategory         *string    `col:"tool_category" json:"tool_category,omitempty"`
	ActionKind           string     `col:"action_kind,required" json:"action_kind"`
	PDBCommand           *string    `col:"pdb_command" json:"pdb_command,omitempty"`
	Targets              []string   `col:"targets" json:"targets,omitzero"`
	Observation          *string    `col:"observation" json:"observation,omitempty"`
	ObservationSource    *string    `col:"observation_source" json:"observation_source,omitempty"`
	ObservationSHA256    *string    `col:"observation_sha256" json:"observation_sha256,omitempty"`
	ObservationBytes     *int64     `col:"observation_bytes" json:"observation_bytes,omitempty"`
	ObservationTruncated *bool      `col:"observation_truncated" json:"observation_truncated,omitempty"`
	TriggeredJSON        *string    `col:"triggered_json" json:"triggered_json,omitempty"`
	IsError              *bool      `col:"is_error" json:"is_error,omitempty"`
	ErrorClass           *string    `col:"error_class" json:"error_class,omitempty"`
	FormatError          *bool      `col:"format_error" json:"format_error,omitempty"`
	ExitCode             *int32     `col:"exit_code" json:"exit_code,omitempty"`
	ScoreAfter           *float64   `col:"score_after" json:"score_after,omitempty"`
	TestsPassed          *int32     `col:"tests_passed" json:"tests_passed,omitempty"`
	TestsFailed          *int32     `col:"tests_failed" json:"tests_failed,omitempty"`
	BreakpointsJSON      *string    `col:"breakpoints_json" json:"breakpoints_json,omitempty"`
	WorkspaceSHA256      *string    `col:"workspace_sha256" json:"workspace_sha256,omitempty"`
	FilesChanged         []string   `col:"files_changed" json:"files_changed,omitzero"`
	PromptTokens         *int64     `col:"prompt_tokens" json:"prompt_tokens,omitempty"`
	CompletionTokens     *int64     `col:"completion_tokens" json:"completion_tokens,omitempty"`
	CachedTokens         *int64     `col:"cached_tokens" json:"cached_tokens,omitempty"`
	ReasoningTokens      *int64     `col:"reasoning_tokens" json:"reasoning_tokens,omitempty"`
	CostUSD              *float64   `col:"cost_usd" json:"cost_usd,omitempty"`
	LLMMS                *int64     `col:"llm_ms" json:"llm_ms,omitempty"`
	EnvMS                *int64     `col:"env_ms" json:"env_ms,omitempty"`
	ModelStep            *string    `col:"model_step" json:"model_step,omitempty"`
	FinishReason         *string    `col:"finish_reason" json:"finish_reason,omitempty"`
	LLMRetries           *int32     `col:"llm_retries" json:"llm_retries,omitempty"`
	LLMCallCount         *int32     `col:"llm_call_count" json:"llm_call_count,omitempty"`
	PromptSHA256         *string    `col:"prompt_sha256" json:"prompt_sha256,omitempty"`
	PromptMessages       *int32     `col:"prompt_messages" json:"prompt_messages,omitempty"`
	PromptRebuilds       *bool      `col:"prompt_rebuilds" json:"prompt_rebuilds,omitempty"`
	ContextOp            *string    `col:"context_op" json:"context_op,omitempty"`
	ContextOpJSON        *string    `col:"context_op_json" json:"context_op_json,omitempty"`
	IsCopiedContext      *bool      `col:"is_copied_context" json:"is_copied_context,omitempty"`
	Synthetic            *bool      `col:"synthetic" json:"synthetic,omitempty"`
	Replayed             *bool      `col:"replayed" json:"replayed,omitempty"`
	GoldEdit             *bool      `col:"gold_edit" json:"gold_edit,omitempty"`
	FrameFile            *string    `col:"frame_file" json:"frame_file,omitempty"`
	FrameLine            *int32     `col:"frame_line" json:"frame_line,omitempty"`
	FrameFunction        *string    `col:"frame_function" json:"frame_function,omitempty"`
	DebuggerEvent        *string    `col:"debugger_event" json:"debugger_event,omitempty"`
	IsNewInformation     *bool      `col:"is_new_information" json:"is_new_information,omitempty"`
	GoldHitFile          *bool      `col:"gold_hit_file" json:"gold_hit_file,omitempty"`
	GoldHitHunk          *bool      `col:"gold_hit_hunk" json:"gold_hit_hunk,omitempty"`
	RepeatOf             *int32     `col:"repeat_of" json:"repeat_of,omitempty"`
	Train                bool       `col:"train,required" json:"train"`
	MaskReason           *string    `col:"mask_reason" json:"mask_reason,omitempty"`
	Redacted             *int32     `col:"redacted" json:"redacted,omitempty"`
	Phase                *string    `col:"phase" json:"phase,omitempty"`                           // since 1.1.0
	ToolSetSHA256        *string    `col:"tool_set_sha256" json:"tool_set_sha256,omitempty"`       // since 1.1.0
	ArgumentsRepaired    *bool      `col:"arguments_repaired" json:"arguments_repaired,omitempty"` // since 1.1.0
	UsageSource          *string    `col:"usage_source" json:"usage_source,omitempty"`             // since 1.1.0
	RequestSHA256        *string    `col:"request_sha256" json:"request_sha256,omitempty"`         // since 1.1.0
	ResponseSHA256       *string    `col:"response_sha256" json:"response_sha256,omitempty"`       // since 1.1.0
	LeakPatterns         []string   `col:"leak_patterns" json:"leak_patterns,omitzero"`            // since 1.3.0
	LinesShown           *int32     `col:"lines_shown" json:"lines_shown,omitempty"`               // since 2.2.0
	LinesNew             *int32     `col:"lines_new" json:"lines_new,omitempty"`                   // since 2.2.0
	GoldLinesNew         *int32     `col:"gold_lines_new" json:"gold_lines_new,omitempty"`         // since 2.2.0
	ClaimsJSON           *string    `col:"claims_json" json:"claims_json,omitempty"`               // since 2.3.0
	NClaimsTrue          *int32     `col:"n_claims_true" json:"n_claims_true,omitempty"`           // since 2.3.0
	NClaimsFalse         *int32     `col:"n_claims_false" json:"n_claims_false,omitempty"`         // since 2.3.0
	NClaimsUnchecked     *int32     `col:"n_claims_unchecked" json:"n_claims_unchecked,omitempty"` // since 2.3.0
	NUnseen              *int32     `col:"n_unseen" json:"n_unseen,omitempty"`                     // since 2.3.0
	UnseenJSON           *string    `col:"unseen_json" json:"unseen_json,omitempty"`               // since 2.3.0
	SurpriseBits         *float64   `col:"surprise_bits" json:"surprise_bits,omitempty"`           // since 2.3.0
	IsPadding            *bool      `col:"is_padding" json:"is_padding,omitempty"`                 // since 2.3.0
	GoldNDiffering       *int32     `col:"gold_n_differing" json:"gold_n_differing,omitempty"`     // since 2.3.0
}

// MaxObservation is the maximum size of steps.observation in bytes. Table blobs has the whole text of a longer one.
const MaxObservation = 64 << 10

// ObservationCut reports whether the row has only the beginning of the text that the model saw.
func (s *StepRow) ObservationCut() bool {
	return Value(s.ObservationTruncated) && len(Value(s.Observation)) > MaxObservation-utf8.UTFMax
}

// Value returns the value of a column, or the zero value for null.
func Value[T any](column *T) (v T) {
	if column != nil {
		v = *column
	}
	return v
}
