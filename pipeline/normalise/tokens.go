package normalise

import (
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tokenizer is the name of the tokenizer that sft_tokens is counted with.
const Tokenizer = tokens.Default

// countTokens fills the columns with the number of tokens of the episode as a training text: all
// texts of the rows, including calls and reasoning, and the tool definitions, without a chat
// template.
func countTokens(e *schemas.EpisodeRow, rows []schemas.StepRow, tools []schemas.ToolSchema) error {
	counter, err := tokens.Named(Tokenizer)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range tools {
		n += counter.Text(t.Name) + counter.Text(t.Description) + counter.Text(string(t.Parameters))
	}
	for i := range rows {
		r := &rows[i]
		n += counter.Text(r.Message)
		for _, text := range []*string{r.Reasoning, r.ToolName, r.ArgumentsJSON, r.Observation} {
			if text != nil {
				n += counter.Text(*text)
			}
		}
	}
	byName, err := schemas.CanonicalJSON(map[string]int{Tokenizer: n})
	if err != nil {
		return err
	}
	e.SFTTokens, e.SFTTokenizer, e.SFTTokensJSON = new(int64(n)), new(Tokenizer), new(string(byName))
	return nil
}
