package views

import "github.com/tracesmith/tracesmith/sinks"

// need remembers whether any episode had what a view is made of.
type need struct {
	what, remedy string
	asked, met   bool
}

func (n *need) saw(has bool) {
	n.asked = true
	n.met = n.met || has
}

// check is an error where episodes were seen and none had it.
func (n *need) check() error {
	if !n.asked || n.met {
		return nil
	}
	return &sinks.MissingError{What: n.what, Remedy: n.remedy}
}
