package synth

import (
	"strconv"

	"github.com/tracesmith/tracesmith/schemas"
)

// picker chooses among wordings. The choice depends on its key alone.
type picker string

func (p picker) of(what string, options ...string) string {
	n, _ := strconv.ParseUint(schemas.HashBytes([]byte(string(p) + "\x00" + what))[:8], 16, 64) // a hash in hex
	return options[n%uint64(len(options))]
}
