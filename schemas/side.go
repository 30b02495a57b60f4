package schemas

import "time"

// The other tables of a dataset: blobs, tool sets, annotations, dead letters and
// selections. The rules of rows.go apply.

// BlobRow is one row of table blobs: a text that is too long for its row,
// addressed by content. Key: sha256.
type BlobRow struct {
	SHA256    string `col:"sha256,required" json:"sha256"`
	Bytes     int64  `col:"bytes,required" json:"bytes"`
	MediaType string `col:"media_type,required" json:"media_type"`
	Content   string `col:"content,required" json:"content"`
}

// ToolSetRow is one row of table tool_sets: tool definitions that the agent of an episode
// was given, as a JSON list of OpenAI function schemas. Key: tool_set_sha256, which
// is Hash of the []ToolSchema.
type ToolSetRow struct {
	ToolSetSHA256 string   `col:"tool_set_sha256,required" json:"tool_set_sha256"`
	ToolsJSON     string   `col:"tools_json,required" json:"tools_json"`
	NTools        int32    `col:"n_tools,required" json:"n_tools"`
	ToolNames     []string `col:"tool_names,required" json:"tool_names"`
}

// AnnotationRow is one row of table annotations: a fact, critique, judge score,
// criterion or human label about an episode or one of its steps.
type AnnotationRow struct {
	AnnotationID     string    `col:"annotation_id,required" json:"annotation_id"`
	EpisodeID        string    `col:"episode_id,required" json:"episode_id"`
	StepIndex        *int32    `col:"step_index" json:"step_index,omitempty"`
	Kind             string    `col:"kind,required" json:"kind"`
	Text             *string   `col:"text" json:"text,omitempty"`
	Label            *string   `col:"label" json:"label,omitempty"`
	Score            *float64  `col:"score" json:"score,omitempty"`
	Evidence         *string   `col:"evidence" json:"evidence,omitempty"`
	UsesGold         bool      `col:"uses_gold,required" json:"uses_gold"`
	Annotator        string    `col:"annotator,required" json:"annotator"`
	AnnotatorVersion *string   `col:"annotator_version" json:"annotator_version,omitempty"`
	CostUSD          *float64  `col:"cost_usd" json:"cost_usd,omitempty"`
	CreatedAt        time.Time `col:"created_at,required" json:"created_at"`
}

// SelectionRow is one row of a selection file: the decision of the named filter
// about an episode. RankInGroup counts from 1 within a group and is set for
// episodes that passed every predicate before the cap.
type SelectionRow struct {
	EpisodeID   string   `col:"episode_id,required" json:"episode_id"`
	Kept        bool     `col:"kept,required" json:"kept"`
	FirstReason *string  `col:"first_reason" json:"first_reason,omitempty"`
	Reasons     []string `col:"reasons,required" json:"reasons"`
	RankInGroup *int32   `col:"rank_in_group" json:"rank_in_group,omitempty"`
}

// DeadLetterRow is one unit of work that has no episode: failed, filtered or
// skipped. Key: run_id, unit_key. As JSON it is a line of a run's
// dead-letters.jsonl.
type DeadLetterRow struct {
	RunID        string     `col:"run_id,required" json:"run_id"`
	UnitKey      string     `col:"unit_key,required" json:"unit_key"`
	Stage        string     `col:"stage,required" json:"stage"`
	State        string     `col:"state,required" json:"state"`
	ErrorClass   *string    `col:"error_class" json:"error_class,omitempty"`
	ErrorMessage *string    `col:"error_message" json:"error_message,omitempty"`
	Attempts     int32      `col:"attempts,required" json:"attempts"`
	FirstAt      *time.Time `col:"first_at" json:"first_at,omitempty"`
	LastAt       *time.Time `col:"last_at" json:"last_at,omitempty"`
	CostUSD      *float64   `col:"cost_usd" json:"cost_usd,omitempty"`
	InputRef     *string    `col:"input_ref" json:"input_ref,omitempty"`
	Retryable    *bool      `col:"retryable" json:"retryable,omitempty"`
}
