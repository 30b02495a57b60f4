package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// listColumn is a column of a list of episodes: one of table episodes, or one of shortColumns.
type listColumn struct {
	name  string
	value func(e *schemas.EpisodeRow) any    // nil: unknown
	text  func(e *schemas.EpisodeRow) string // nil: that of value
	order func(e *schemas.EpisodeRow) any    // nil: value
	color func(e *schemas.EpisodeRow) string // nil: none
}

// shortColumns are columns of lists that table episodes does not have.
var shortColumns = []listColumn{
	{name: "episode", value: func(e *schemas.EpisodeRow) any { return e.EpisodeID[:min(8, len(e.EpisodeID))] }},
	{
		name: "task", value: func(e *schemas.EpisodeRow) any { return taskText(e) },
		order: func(e *schemas.EpisodeRow) any { return fmt.Sprintf("%s#%09d", e.InstanceID, e.Attempt) },
	},
	{name: "reason", value: func(e *schemas.EpisodeRow) any { return e.ExitReason }},
	{name: "turns", value: func(e *schemas.EpisodeRow) any { return e.NTurns }},
	{name: "tokens", value: func(e *schemas.EpisodeRow) any { return known(metrics.Tokens(e)) }},
	{
		name: "cost", value: func(e *schemas.EpisodeRow) any { return known(e.CostUSD) },
		text: func(e *schemas.EpisodeRow) string {
			if e.CostUSD == nil {
				return unknownText
			}
			return observe.USD(*e.CostUSD)
		},
	},
	{
		name: "seconds", value: func(e *schemas.EpisodeRow) any {
			if e.WallMS == nil {
				return nil
			}
			return float64(*e.WallMS) / 1000
		},
	},
	{name: "agent", value: func(e *schemas.EpisodeRow) any { return e.AgentName }},
	{name: "claim", value: func(e *schemas.EpisodeRow) any { return known(e.ClaimedResolved) }},
}

// defaultColumns are the columns of a list without --columns. Those without a value in any episode are left
// out, and agent if the episodes have models.
var defaultColumns = []string{"episode", "task", "outcome", "reason", "turns", "tokens", "cost", "model", "agent", "claim"}

// unknownText stands for null.
const unknownText = observe.Unknown

// fillers are texts of required columns that say nothing: of an agent without a model, and of imports.
var fillers = []string{"", "none", "unknown"}

// taskText returns the name of an episode that people use: the instance id of its task and the attempt.
func taskText(e *schemas.EpisodeRow) string { return fmt.Sprintf("%s#%d", e.InstanceID, e.Attempt) }

func known[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// newListColumn returns the column with a name. flag is the flag that names it.
func newListColumn(flag, name string) (listColumn, error) {
	var c listColumn
	if i := slices.IndexFunc(shortColumns, func(c listColumn) bool { return c.name == name }); i >= 0 {
		c = shortColumns[i]
	} else {
		column, err := episodeColumn(flag, name)
		if err != nil {
			return c, err
		}
		c = listColumn{name: name, value: func(e *schemas.EpisodeRow) any { return column.Value(reflect.ValueOf(e).Elem()) }}
	}
	if name == "outcome" {
		c.text = func(e *schemas.EpisodeRow) string { return cmp.Or(e.OutcomeText(), unknownText) }
		c.color = outcomeColor
	}
	if c.text == nil {
		c.text = func(e *schemas.EpisodeRow) string { return valueText(c.value(e)) }
	}
	if c.order == nil {
		c.order = c.value
	}
	return c, nil
}

func newListColumns(flag string, names []string) ([]listColumn, error) {
	var columns []listColumn
	for _, name := range names {
		c, err := newListColumn(flag, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// outcomeColor tells successes, failures of the agent and other endings apart.
func outcomeColor(e *schemas.EpisodeRow) string {
	switch schemas.Value(e.Outcome) {
	case schemas.OutcomeResolved:
		return green
	case schemas.OutcomeUnresolved, schemas.OutcomeLimit:
		return yellow
	case schemas.OutcomeUnverified, "":
		return dim
	}
	return red
}

// valueText returns the value of a column on one line.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return unknownText
	case string:
		return strings.Join(strings.Fields(v), " ")
	case float64:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case time.Time:
		return v.Format(time.RFC3339)
	case []string:
		return strings.Join(v, ",")
	}
	return fmt.Sprint(v)
}

// isNumber reports whether a value is aligned to the right.
func isNumber(v any) bool {
	switch v.(type) {
	case int32, int64, float64:
		return true
	}
	return false
}

// empty reports whether a value says nothing in a list.
func empty(v any) bool {
	text, isText := v.(string)
	return v == nil || isNumber(v) && reflect.ValueOf(v).IsZero() || isText && slices.Contains(fillers, text)
}

// compareValues orders values of the same column.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int32:
		return cmp.Compare(a, b.(int32))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Time:
		return a.Compare(b.(time.Time))
	case []string:
		return slices.Compare(a, b.([]string))
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) // false < true
}

// sortKey is one column of --sort.
type sortKey struct {
	column     listColumn
	descending bool
}

func newSortKeys(names []string) ([]sortKey, error) {
	var keys []sortKey
	for _, name := range names {
		name, descending := strings.CutPrefix(strings.TrimSpace(name), "-")
		c, err := newListColumn("sort", name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, sortKey{c, descending})
	}
	return keys, nil
}

// compareKeys orders the values of sort keys. Unknown values are last in both directions.
func compareKeys(keys []sortKey, a, b []any) int {
	for i, k := range keys {
		order := 0
		switch {
		case a[i] == nil && b[i] == nil:
		case a[i] == nil:
			return 1
		case b[i] == nil:
			return -1
		default:
			order = compareValues(a[i], b[i])
		}
		if k.descending {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// episodeColumn returns the column of table episodes with this name. flag is the flag that names it.
func episodeColumn(flag, name string) (arrowrec.Column, error) {
	c, ok := arrowrec.Episodes.Column(name)
	if ok {
		return c, nil
	}
	suggestion := "; docs/reference/columns.md lists them"
	if n := similar(name, append(shortNames(), episodeColumns()...)); n != "" {
		suggestion = fmt.Sprintf(": did you mean %q?", n)
	}
	return c, fmt.Errorf("--%s %s: table episodes has no such column%s", flag, name, suggestion)
}

// episodeColumns returns the names of the columns of table episodes.
func episodeColumns() []string {
	var names []string
	for _, c := range arrowrec.Episodes.Columns {
		names = append(names, c.Name)
	}
	return names
}
