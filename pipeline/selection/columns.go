package selection

import (
	"sync"

	"cel.dev/cel-go/cel"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Variables of expressions, in addition to the columns of the table episodes and the
// variables of groups (group.go).
const (
	varSteps    = "steps" // all rows of the episode in the table steps
	varCalls    = "calls" // the agent's rows: calls, and replies without a call
	nullColumns = "_null" // the names of the columns that are null, for known()
)

// celTypes maps the kinds of columns to types of CEL.
var celTypes = map[arrowrec.Kind]*cel.Type{
	arrowrec.Text: cel.StringType, arrowrec.Bool: cel.BoolType, arrowrec.Int32: cel.IntType, arrowrec.Int64: cel.IntType,
	arrowrec.Float64: cel.DoubleType, arrowrec.Timestamp: cel.TimestampType, arrowrec.TextList: cel.ListType(cel.StringType),
}

// reservedNames are the names of columns and variables, which predicates cannot have.
var reservedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{varSteps: true, varCalls: true}
	for _, c := range arrowrec.Episodes.Columns {
		names[c.Name] = true
	}
	for name := range groupTypes {
		names[name] = true
	}
	return names
})

func columnNames(t *arrowrec.Table) []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

func textColumns() []string {
	var names []string
	for _, c := range arrowrec.Episodes.Columns {
		if c.Kind == arrowrec.Text {
			names = append(names, c.Name)
		}
	}
	return names
}
