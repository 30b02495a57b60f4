package arrowrec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Grouping groups episodes by the values of columns of table episodes.
type Grouping []Column

// Name returns the names of the columns, separated by commas; "" for no column.
func (g Grouping) Name() string {
	var names []string
	for _, c := range g {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

// Value returns the values of the columns, separated by commas; "unknown" stands for null.
func (g Grouping) Value(e *schemas.EpisodeRow) string {
	var values []string
	for _, c := range g {
		text := "unknown"
		if v := c.Value(reflect.ValueOf(e).Elem()); v != nil {
			text = fmt.Sprint(v)
		}
		values = append(values, text)
	}
	return strings.Join(values, ", ")
}
