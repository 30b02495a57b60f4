package views

import "github.com/tracesmith/tracesmith/sinks"

// requirement is data that a view is made of and that episodes may lack. A view that
// embeds one ends with a MissingError if it saw episodes and none of them had the data.
type requirement struct {
	what, remedy string
	seen, met    bool
}

// observe records whether an episode, or a part of one, has the data.
func (r *requirement) observe(has bool) {
	r.seen = true
	r.met = r.met || has
}

// Finish implements sinks.Finisher.
func (r *requirement) Finish() ([]sinks.Row, sinks.Notes, error) {
	if !r.seen || r.met {
		return nil, nil, nil
	}
	return nil, nil, &sinks.MissingError{What: r.what, Remedy: r.remedy}
}
