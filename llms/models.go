package llms

// ModelInfo describes a model in a server's list.
type ModelInfo struct {
	ID           string `json:"id"`
	ContextLimit int64  `json:"context_limit,omitempty"` // tokens, 0 if unknown
}
