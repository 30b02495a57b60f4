package redact

// span is a secret in a text.
type span struct {
	from, to int
	kind     string
	learn    bool // told by the name before it
	rank     int  // of spans that begin at one place the highest names the kind
	value    int  // the number of a known value
}

// meter counts the work on one text. A text that would exceed its budget is replaced
// as a whole.
type meter struct{ spent, budget int }

// Costs of the search in units of work, about one byte read by an expression each, and
// the budget per byte of text. At 40 to 100 ns per unit, no text takes more than about
// 0.2 s per MB.
const (
	perRun   = 8   // running an expression
	perRead  = 3   // reading a byte with an expression
	perName  = 80  // looking at the text behind a name
	perValue = 400 // judging a value
	perByte  = 5   // budget per byte of text
	atLeast  = 8 << 10
	shortRun = 48 // characters of keys that expressions read at no extra cost
)

func (m *meter) spend(n int) { m.spent += n }

// over reports whether the budget is used up.
func (m *meter) over() bool { return m.spent > m.budget }
