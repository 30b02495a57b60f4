package synth

import (
	"strconv"

	"github.com/tracesmith/tracesmith/schemas"
)

// picker chooses among wordings. It is the key that the choices depend on.
type picker string

// choose returns one of the options. The choice depends only on the picker, what and the
// number of options.
func (p picker) choose(what string, options ...string) string {
	n, _ := strconv.ParseUint(schemas.HashBytes([]byte(string(p) + "\x00" + what))[:8], 16, 64) // a hash in hex
	return options[n%uint64(len(options))]
}
