package schemas

// ContextOp describes how the message list that a model was sent differs from the
// previous rows of its conversation: column context_op_json. The zero value means
// that all previous rows were sent unchanged.
type ContextOp struct {
	// Dropped lists the omitted steps as ranges that include both ends. Only whole
	// turns are omitted.
	Dropped [][2]int `json:"dropped,omitempty"`
	// Note replaces the dropped steps, at the end of the first user message.
	Note string `json:"note,omitempty"`
	// Trimmed lists the answers that the model saw only in part.
	Trimmed []Trim `json:"trimmed,omitempty"`
	// SystemAs is "user" if the system prompt is the beginning of the first user
	// message, because the model has no system role.
	SystemAs string `json:"system_as,omitempty"`
	// Style is "text" if calls are written in the text of a reply and their answers
	// are user messages, one per turn.
	Style string `json:"style,omitempty"`
	// Limit is the maximum length of a prompt in tokens, derived from a server's refusal of a
	// longer prompt.
	Limit int `json:"limit,omitempty"`
}

// Trim describes the part of an answer that was shown: the code points before
// From, then Mark, then the code points from To on.
type Trim struct {
	Step int    `json:"step"`
	From int    `json:"from"`
	To   int    `json:"to"`
	Mark string `json:"mark"`
}

// Values of column context_op.
const (
	ContextNone = "none"
	ContextTrim = "trim"
)

// Kind returns the value of column context_op.
func (o ContextOp) Kind() string {
	if len(o.Dropped) > 0 || len(o.Trimmed) > 0 {
		return ContextTrim
	}
	return ContextNone
}

// Drops reports whether a step was omitted.
func (o ContextOp) Drops(step int) bool {
	for _, r := range o.Dropped {
		if r[0] <= step && step <= r[1] {
			return true
		}
	}
	return false
}

// Shown returns the part of a step's text that the model saw.
func (o ContextOp) Shown(step int, text string) string {
	for _, t := range o.Trimmed {
		if t.Step == step {
			return t.Apply(text)
		}
	}
	return text
}

// Apply returns the part of text that was shown.
func (t Trim) Apply(text string) string {
	runes := []rune(text)
	if t.From < 0 || t.From > t.To || t.To > len(runes) {
		return text // t belongs to another text
	}
	return string(runes[:t.From]) + t.Mark + string(runes[t.To:])
}
