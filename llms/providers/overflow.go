package providers

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// overflows lists the servers' messages for a conversation that is too long. The group
// `limit` is the context limit in tokens, if the message contains it.
var overflows = []struct {
	message *regexp.Regexp
	servers string
}{
	{regexp.MustCompile(`(?i)maximum (?:context|prompt|model) length (?:is|of) (?P<limit>\d+)`), "OpenAI, vLLM, DeepSeek, xAI, SGLang"},
	{regexp.MustCompile(`(?i)too long: \d+ tokens > (?P<limit>\d+) maximum`), "Anthropic"},
	{regexp.MustCompile(`(?i)exceed context limit: \d+ \+ \d+ > (?P<limit>\d+)`), "Anthropic, with the answer"},
	{regexp.MustCompile(`(?i)token count.*exceeds the maximum number of tokens allowed \((?P<limit>\d+)\)`), "Gemini"},
	{regexp.MustCompile(`(?i)model's context length \(?(?P<limit>\d+)`), "SGLang"},
	{regexp.MustCompile(`(?i)too large for model with (?P<limit>\d+) maximum context`), "Mistral"},
	{regexp.MustCompile(`(?i)tokens in the prompt cannot exceed (?P<limit>\d+)`), "Cohere"},
	{regexp.MustCompile(`(?i)max_new_tokens\W+must be <=? ?(?P<limit>\d+)`), "text-generation-inference"},
	{regexp.MustCompile(`(?i)context length of only (?P<limit>\d+)`), "LM Studio"},
	{regexp.MustCompile(`(?i)range of input length should be \[\d+, ?(?P<limit>\d+)`), "DashScope"},
	{regexp.MustCompile(`(?i)exceeded model token limit:? ?(?P<limit>\d+)?`), "Moonshot"},
	{regexp.MustCompile(`(?i)prompt exceeds max(?:imum)? length`), "Zhipu"},
	{regexp.MustCompile(`(?i)exceeds the available context size`), "llama.cpp"},
	{regexp.MustCompile(`(?i)(?:prompt|input|request|messages?)(?: is| are|'s)? too long`), "Bedrock, Ollama"},
	{regexp.MustCompile(`(?i)reduce the length of the (?:messages|prompt|input)`), "Groq"},
	{regexp.MustCompile(`(?i)context.?(?:length|window|size|limit)|max(?:imum)?.?(?:context|model.?len)|too many (?:input |prompt )?tokens|` +
		`(?:input|prompt) token count.*exceed|exceeds? the (?:maximum|max|limit|allowed)[^.]*tokens`), "others"},
}

// tooLong reports whether a message says that the conversation is too long. limit is the
// context limit in tokens, 0 if the message does not contain it.
func tooLong(message string) (limit int64, ok bool) {
	for _, o := range overflows {
		m := o.message.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		ok = true
		if i := o.message.SubexpIndex("limit"); i > 0 {
			limit, _ = strconv.ParseInt(m[i], 10, 64)
		}
		return limit, true
	}
	return 0, false
}

// contextSizes reads the sizes in llama.cpp's error. It reports whether the prompt exceeds
// the context limit.
func contextSizes(raw []byte) (limit int64, ok bool) {
	if !strings.Contains(string(raw[:min(len(raw), 4096)]), "n_ctx") {
		return 0, false
	}
	type sizes struct {
		Prompt  *float64 `json:"n_prompt_tokens"`
		Context *float64 `json:"n_ctx"`
	}
	var top struct {
		sizes
		Error sizes `json:"error"`
	}
	if json.Unmarshal(raw, &top) != nil {
		return 0, false
	}
	for _, s := range []sizes{top.Error, top.sizes} {
		if s.Prompt != nil && s.Context != nil && *s.Prompt >= *s.Context {
			return count(s.Context), true
		}
	}
	return 0, false
}
