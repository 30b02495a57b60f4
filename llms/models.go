package llms

// ModelInfo is what a server says of one of its models.
type ModelInfo struct {
	ID           string `json:"id"`
	ContextLimit int64  `json:"context_limit,omitempty"` // tokens, 0: not said
}
