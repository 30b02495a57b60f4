package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// lintSchema is the schema of the report on an export. lintSuffix is the suffix that the
// report's file adds to the name of the output.
const (
	lintSchema = "tracesmith.lint/1"
	lintSuffix = ".lint.json"
)

// heldBack is the key in lint.Dropped that counts the episodes with a possible secret.
const heldBack = "held back: a secret"

// observationsCut is the key in lint.Notes that counts the observations of which rows have only the first 64 KiB.
const observationsCut = "observations_cut_at_64_kib"

// lint is the report on an export. Each selected episode is exported, held back because of a
// possible secret, without rows, or in a split that --split does not name.
type lint struct {
	Schema    string      `json:"schema"`
	View      string      `json:"view"`
	Container string      `json:"container"`
	Options   lintOptions `json:"options"`
	Source    string      `json:"source"`
	Selection string      `json:"selection"`
	Read      int         `json:"episodes_read"`
	Selected  int         `json:"episodes_selected"`
	Exported  int         `json:"episodes_exported"`
	// OtherSplits counts the selected episodes in splits that --split does not name.
	OtherSplits map[string]int `json:"episodes_of_other_splits"`
	Rows        int            `json:"rows"`
	Tokens      lintTokens     `json:"tokens"`
	// Dropped counts the episodes, rows and turns that were left out, by reason. Notes
	// counts other things that readers of the rows should know.
	Dropped map[string]int `json:"dropped"`
	Notes   map[string]int `json:"notes"`

	exported map[string]bool // ids of episodes with a row
	checker  *redact.Checker
	limit    int      // the trainer's default limit of tokens in a row; 0: no limit
	remedy   string   // how to raise limit
	secret   error    // describes the last possible secret that held back an episode
	phases   []string // phases (seek, solve) of the selected episodes, each of which is a conversation
}

type lintOptions struct {
	Splits []string `json:"splits"`
	sinks.ViewOptions
	MaxTokens int            `json:"max_tokens,omitempty"`
	Settings  map[string]any `json:"settings,omitempty"`
}

// lintTokens counts the tokens of the rows, without a chat template. The trainer's default
// loss covers trained tokens. Masked tokens come from the agent but must not be learned. All
// other tokens are context.
type lintTokens struct {
	Tokenizer string `json:"tokenizer"`
	Total     int64  `json:"total"`
	Trained   int64  `json:"trained"`
	Masked    int64  `json:"masked"`
	Context   int64  `json:"context"`
	Longest   int    `json:"longest_row"`
	// OverLimit counts the rows that exceed the trainer's default length.
	OverLimit int `json:"rows_over_trainer_limit"`
}

// note adds the notes of a view to Dropped or Notes.
func (r *lint) note(notes sinks.Notes) {
	for k, n := range notes {
		if strings.HasPrefix(k, "rows_dropped") || strings.HasPrefix(k, "turns_cut") || strings.HasPrefix(k, "episodes_without") {
			r.Dropped[k] += n
			continue
		}
		r.Notes[k] += n
	}
}

// countWithoutRows counts the exported episodes, and those that have no row although they
// were not held back and --split names their split.
func (r *lint) countWithoutRows() {
	r.Exported = len(r.exported)
	if n := r.Selected - r.Exported - r.Dropped[heldBack] - r.outside(); n > 0 {
		r.Dropped["episodes_without_rows"] = n
	}
}

// counts returns the counts of Dropped and Notes as "name count", sorted by name.
func (r *lint) counts() []string {
	all := maps.Clone(r.Notes)
	maps.Copy(all, r.Dropped)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, fmt.Sprintf("%s %d", k, all[k]))
	}
	return out
}

// overLimit reports how many rows exceed the trainer's default length; "" if none does.
func (r *lint) overLimit() string {
	if r.Tokens.OverLimit == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s exceed %d tokens, beyond which the trainer by default cuts or drops them: %s",
		r.Tokens.OverLimit, count(r.Rows, "row"), r.limit, r.remedy)
}

func (r *lint) write(path string) error {
	report, err := schemas.CanonicalJSON(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(report, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the lint report: %w", err)
	}
	return nil
}

// parseSettings parses key=value pairs. Values are JSON. A value that is not valid JSON is a
// string, and the value of the key version always is.
func parseSettings(pairs []string) (map[string]any, error) {
	var out map[string]any
	for _, p := range pairs {
		key, raw, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--with %s: write it as key=value", p)
		}
		if out == nil {
			out = map[string]any{}
		}
		var value any
		if json.Unmarshal([]byte(raw), &value) != nil || key == "version" {
			value = raw
		}
		out[key] = value
	}
	return out, nil
}
