package schemas

import (
	"slices"
	"strconv"
	"strings"
)

// SchemaVersion is the version of all tables; see CHANGELOG.md, heading Dataset.
// Within a major version, only nullable columns are added.
const SchemaVersion = "2.3.0"

// LastV1 is the last 1.x version. Records of every 1.x version are published with
// its columns.
const LastV1 = "1.3.0"

// Major returns the first number of a version, or 0 if it has none.
func Major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// retired lists the columns that 2.0.0 removed, by table. They were null in every
// row, so reading a 1.x row into a row struct loses nothing.
var retired = map[string][]struct {
	after string // the column before it
	Column
}{
	"episodes": {
		{"model_provider", Column{Name: "model_revision", Type: "utf8", Meaning: "revision of the weights"}},
		{"model_revision", Column{Name: "model_terms", Type: "utf8", Meaning: "terms of use of the model's output"}},
	},
	"steps": {
		{"llm_ms", Column{Name: "ttft_ms", Type: "int64", Unit: "ms", Meaning: "time to the first token"}},
		{"env_ms", Column{Name: "queue_ms", Type: "int64", Unit: "ms", Meaning: "time spent waiting for a free sandbox or a rate limit"}},
	},
}

// At returns the table as files of the given schema version have it: t itself for
// the current major version, the columns of LastV1 for 1.x.
func (t TableDoc) At(version string) TableDoc {
	if Major(version) >= Major(SchemaVersion) {
		return t
	}
	old := t
	old.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return Major(c.Since) > Major(version) })
	for _, r := range retired[t.Name] {
		i := slices.IndexFunc(old.Columns, func(c Column) bool { return c.Name == r.after })
		c := r.Column
		c.Source, c.Since, c.Group = "never filled; removed in 2.0.0", "1.0.0", old.Columns[i].Group
		old.Columns = slices.Insert(old.Columns, i+1, c)
	}
	return old
}
