package trace

// frame is one call of a function, or one part of it that runs without interruption if it is a generator.
type frame struct {
	serial   int
	function string // "file:function"; "" if it has no recorded events
	items    []item // in order
	start    event  // its first recorded event
	before   bool   // it began before the window
	partial  bool   // the window ended before its last event
	closed   bool   // its return was recorded
}

// item is a step of a frame: an event of its own, or a call that it makes.
type item struct {
	event
	child *frame
}

// first returns the first event of the item.
func (i item) first() event {
	if i.child != nil {
		return i.child.start
	}
	return i.event
}

// newTree returns a frame whose children are the outermost frames of a run. The tree has the events of the
// window, and calls, returns and exceptions up to the given depth after it.
func newTree(s *steps, depth int) *frame {
	root := &frame{before: true}
	stack := []*frame{root}
	add := func(e event, within bool) {
		for len(stack) > e.depth+1 {
			stack = stack[:len(stack)-1]
		}
		for len(stack) < e.depth { // frames that began before the window
			f := &frame{before: true}
			stack[len(stack)-1].items = append(stack[len(stack)-1].items, item{child: f})
			stack = append(stack, f)
		}
		var f *frame
		switch {
		case len(stack) > e.depth && stack[e.depth].function == "" && e.kind != "call":
			f = stack[e.depth]
			f.serial, f.function, f.start = e.serial, e.place(), e
		case len(stack) > e.depth && stack[e.depth].serial == e.serial:
			f = stack[e.depth]
		default:
			f = &frame{serial: e.serial, function: e.place(), start: e, before: e.n == s.events[0].n && e.n > 0}
			stack = stack[:e.depth]
			stack[len(stack)-1].items = append(stack[len(stack)-1].items, item{child: f})
			stack = append(stack, f)
		}
		f.items = append(f.items, item{event: e})
		f.closed = f.closed || e.kind == "return"
		f.partial = f.partial || !within
	}
	for _, e := range s.events {
		add(e, true)
	}
	for _, f := range stack {
		f.partial = !s.whole()
	}
	for _, e := range s.rest {
		if e.kind != "sample" && e.depth <= depth {
			add(e, false)
		}
	}
	return root
}
