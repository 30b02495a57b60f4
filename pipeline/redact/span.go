package redact

// span is a secret in a text.
type span struct {
	from, to int
	kind     string
	learn    bool // recognized by its name: the value must be found elsewhere as well
	rank     int  // of the spans that begin at the same place, the one with the highest rank gives the kind
	value    int  // index of a known value
}

// meter counts the work on one text. A text that would exceed its budget is replaced
// as a whole.
type meter struct{ spent, budget int }

// Costs of the search in units of work, and the budget per byte of text. A unit takes about 40 to
// 100 ns at most. In BenchmarkHostileText, a text of 1 KiB takes at most 2 ms, and longer ones one CPU second per MB.
const (
	perRun   = 8        // running an expression
	perRead  = 3        // reading a byte with an expression
	perName  = 80       // looking at the text after a name
	perValue = 400      // judging a value
	perByte  = 20       // budget per byte of text
	atLeast  = 64 << 10 // minimum budget of a text
	shortRun = 48       // characters of keys that expressions read at no extra cost
)

func (m *meter) spend(n int) { m.spent += n }

// over reports whether the budget is used up.
func (m *meter) over() bool { return m.spent > m.budget }
