package schemas

import (
	"slices"
	"strconv"
	"strings"
)

// SchemaVersion of all tables; see CHANGELOG.md, heading Dataset. Within a major
// version, columns are only added, and those are nullable.
const SchemaVersion = "2.0.0"

// LastV1 is the last version of the first major one. Records of every 1.x version
// are published in its columns.
const LastV1 = "1.3.0"

// Major is the first number of a version, 0 if it has none.
func Major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// retired are the columns that 2.0.0 removed, by table. They were null in every
// row, so reading a 1.x row into a row struct loses nothing.
var retired = map[string][]struct {
	after string // the column that it followed
	Column
}{
	"episodes": {
		{"model_provider", Column{Name: "model_revision", Type: "utf8", Meaning: "revision of the weights"}},
		{"model_revision", Column{Name: "model_terms", Type: "utf8", Meaning: "terms that come with the model's output"}},
	},
	"steps": {
		{"llm_ms", Column{Name: "ttft_ms", Type: "int64", Unit: "ms", Meaning: "time to the first token"}},
		{"env_ms", Column{Name: "queue_ms", Type: "int64", Unit: "ms", Meaning: "waiting for a free sandbox or a rate"}},
	},
}

// At describes the table as files of another schema version have it: of the same
// major version, this one; of the first, the columns of LastV1.
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
