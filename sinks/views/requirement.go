package views

import "github.com/tracesmith/tracesmith/sinks"

// requirement is data that a view needs and that episodes may lack. If a view embeds a
// requirement and none of the rendered episodes has the data, Finish returns a MissingError.
type requirement struct {
	what, remedy    string
	observed, isMet bool
}

// observe records whether an episode, or a part of one, has the data.
func (r *requirement) observe(hasData bool) {
	r.observed = true
	r.isMet = r.isMet || hasData
}

// Finish implements sinks.Finisher.
func (r *requirement) Finish() ([]sinks.Row, sinks.Notes, error) {
	if !r.observed || r.isMet {
		return nil, nil, nil
	}
	return nil, nil, &sinks.MissingError{What: r.what, Remedy: r.remedy}
}
