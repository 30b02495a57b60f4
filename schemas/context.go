package schemas

// ContextOp says how the message list a model was sent follows from the rows of
// its conversation before it, where it is not all of them as they stand: column
// context_op_json. The zero value is all of them.
type ContextOp struct {
	// Dropped are the steps that were left out, from the first to the last of each
	// range, both included. Whole turns go.
	Dropped [][2]int `json:"dropped,omitempty"`
	// Note stands in their place: at the end of the first message of the user.
	Note string `json:"note,omitempty"`
	// Trimmed are answers of which the model saw a part.
	Trimmed []Trim `json:"trimmed,omitempty"`
	// SystemAs is "user" where the system prompt opens the first message of the
	// user, because the model has no system role.
	SystemAs string `json:"system_as,omitempty"`
	// Style is "text" where calls stand in the text of a reply alone, and the user
	// gives the answers: one message a turn.
	Style string `json:"style,omitempty"`
	// Limit of a prompt in tokens, learned from a server that refused a longer one.
	Limit int `json:"limit,omitempty"`
}

// Trim says which part of an answer was shown: the characters (code points)
// before From, then Mark, then those from To on.
type Trim struct {
	Step int    `json:"step"`
	From int    `json:"from"`
	To   int    `json:"to"`
	Mark string `json:"mark"`
}

// Ways a prompt may come about: column context_op.
const (
	ContextNone = "none" // nothing was left out
	ContextTrim = "trim"
)

// Kind is the value of column context_op.
func (o ContextOp) Kind() string {
	if len(o.Dropped) > 0 || len(o.Trimmed) > 0 {
		return ContextTrim
	}
	return ContextNone
}

// Drops tells whether a step was left out.
func (o ContextOp) Drops(step int) bool {
	for _, r := range o.Dropped {
		if r[0] <= step && step <= r[1] {
			return true
		}
	}
	return false
}

// Shown is what the model saw of a step's text.
func (o ContextOp) Shown(step int, text string) string {
	for _, t := range o.Trimmed {
		if t.Step == step {
			return t.Of(text)
		}
	}
	return text
}

// Of is the part of a text that was shown.
func (t Trim) Of(text string) string {
	runes := []rune(text)
	if t.From < 0 || t.From > t.To || t.To > len(runes) {
		return text // of another text
	}
	return string(runes[:t.From]) + t.Mark + string(runes[t.To:])
}
