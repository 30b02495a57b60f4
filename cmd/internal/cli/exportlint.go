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

// The schema of an export's report, and the suffix of its file next to the output.
const (
	lintSchema = "tracesmith.lint/1"
	lintSuffix = ".lint.json"
)

// heldBack is the key in lint.Dropped of episodes with a possible secret.
const heldBack = "held back: a secret"

// lint is the report next to an export. Each selected episode is exported, held back,
// without rows, or in a split that --split does not name.
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
	// Dropped counts rows and turns that were left out, by reason; Notes counts
	// whatever else may surprise a reader of the rows.
	Dropped map[string]int `json:"dropped"`
	Notes   map[string]int `json:"notes"`

	in     map[string]bool // episodes with a row
	check  *redact.Checker
	limit  int      // tokens of a row that the trainer takes by default; 0: all
	remedy string   // what to set for more
	held   error    // error of the last episode with a possible secret
	phases []string // conversations of the selected episodes
}

type lintOptions struct {
	Splits    []string       `json:"splits"`
	Mask      string         `json:"mask,omitempty"`
	AllowGold bool           `json:"allow_gold"`
	Phase     string         `json:"phase,omitempty"`
	Arguments string         `json:"arguments,omitempty"`
	Thinking  string         `json:"thinking,omitempty"`
	Template  string         `json:"chat_template,omitempty"`
	Tools     string         `json:"tools,omitempty"`
	Content   string         `json:"content_null,omitempty"`
	System    string         `json:"system,omitempty"`
	Trim      string         `json:"trim,omitempty"`
	MaxTokens int            `json:"max_tokens,omitempty"`
	Settings  map[string]any `json:"settings,omitempty"`
}

// lintTokens counts the tokens of the rows, without a chat template. The trainer's
// default loss covers the trained ones; masked ones are the agent's, but must not be
// learned; the others are context.
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

func (r *lint) note(notes sinks.Notes) {
	for k, n := range notes {
		if strings.HasPrefix(k, "rows_dropped") || strings.HasPrefix(k, "turns_cut") || strings.HasPrefix(k, "episodes_without") {
			r.Dropped[k] += n
			continue
		}
		r.Notes[k] += n
	}
}

// settle counts the selected episodes that have no rows for any other reason.
func (r *lint) settle() {
	r.Exported = len(r.in)
	if n := r.Selected - r.Exported - r.Dropped[heldBack] - r.outside(); n > 0 {
		r.Dropped["episodes_without_rows"] = n
	}
}

// all returns the counts of both kinds, sorted by name.
func (r *lint) all() []string {
	both := maps.Clone(r.Notes)
	maps.Copy(both, r.Dropped)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(both)) {
		out = append(out, fmt.Sprintf("%s %d", k, both[k]))
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

// settingsOf reads key=value pairs. A value that is not JSON is a string.
func settingsOf(pairs []string) (map[string]any, error) {
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
