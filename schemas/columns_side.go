package schemas

// The columns of the side tables, in the order of their row structs.
var (
	blobColumns = []section{{"", []columnDoc{
		{"sha256", "", "hash of content", "SHA-256", ""},
		{"bytes", "bytes", "size of content", "content", ""},
		{"media_type", "", "text/plain or text/x-diff", "writer", ""},
		{"content", "", "the text, redacted", "observation, patch or log", ""},
	}}}

	toolSetColumns = []section{{"", []columnDoc{
		{"tool_set_sha256", "", "hash of the definitions", "SHA-256 of their canonical JSON", ""},
		{"tools_json", "", "JSON list of OpenAI function definitions", "toolbox", ""},
		{"n_tools", "tools", "number of tools in the list", "tools_json", ""},
		{"tool_names", "", "names of the tools, in order", "tools_json", ""},
	}}}

	annotationColumns = []section{{"", []columnDoc{
		{"annotation_id", "", "id of the annotation", "annotator", ""},
		{"episode_id", "", "joins episodes", "annotator", ""},
		{"step_index", "", "joins steps; null if the annotation is about the whole episode", "annotator", ""},
		{"kind", "", "fact, critique, judge_score, criterion or human", "annotator", ""},
		{"text", "", "text of the annotation", "annotator", ""},
		{"label", "", "true, wrong, uncertain, ...", "annotator", ""},
		{"score", "", "score on the annotator's own scale", "annotator", ""},
		{"evidence", "", "evidence that supports the annotation", "annotator", ""},
		{"uses_gold", "", "the annotator knew the reference fix", "annotator", ""},
		{"annotator", "", "person or program that annotated", "annotator", ""},
		{"annotator_version", "", "version of the annotator", "annotator", ""},
		{"cost_usd", "USD", "cost of the annotation", "annotator", ""},
		{"created_at", "", "time of the annotation", "annotator", ""},
	}}}

	selectionColumns = []section{{"", []columnDoc{
		{"episode_id", "", "joins episodes", "staging", ""},
		{"kept", "", "the selection keeps it", "recipe", ""},
		{"first_reason", "", "first predicate that the episode failed; null if kept", "recipe", ""},
		{"reasons", "", "all predicates that the episode failed", "recipe", ""},
		{"rank_in_group", "", "rank within its group, from 1; null if the episode failed a predicate before the cap", "recipe", ""},
	}}}

	deadLetterColumns = []section{{"", []columnDoc{
		{"run_id", "", "run that the unit of work belongs to", "run directory", "1.3.0"},
		{"unit_key", "", "id that the episode would have had", "plan", "1.3.0"},
		{"stage", "", "stage that failed: rollout, grade, normalise or stage; publish if publish withheld the episode", "runner", "1.3.0"},
		{"state", "", "failed, filtered (it contains a secret) or skipped", "runner", "1.3.0"},
		{"error_class", "", "class of the last error", "runner", "1.3.0"},
		{"error_message", "", "text of that error, redacted", "runner", "1.3.0"},
		{"attempts", "deliveries", "number of attempts", "engine", "1.3.0"},
		{"first_at", "", "first try", "runner's clock", "1.3.0"},
		{"last_at", "", "last try", "runner's clock", "1.3.0"},
		{"cost_usd", "USD", "cost of its model calls; null if unknown because a call has no price or got no answer", "ledger", "1.3.0"},
		{"input_ref", "", "task_key of the task", "plan", "1.3.0"},
		{"retryable", "", "another run may succeed", "runner", "1.3.0"},
	}}}
)
