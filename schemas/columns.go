package schemas

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Column describes one column of a published table. docs/reference/columns.md,
// the dataset card and croissant.json are generated from it.
type Column struct {
	Name     string
	Type     string // as Arrow writes it: utf8, bool, int32, int64, float64, timestamp[us, tz=UTC], list<utf8>
	Required bool   // never null in a published row
	Unit     string // "" for text, names and hashes
	Meaning  string
	Source   string // which part of the program provides the value, or how it is computed
	Since    string // schema version that added the column
	Group    string // heading of the column in the documentation
}

// TableDoc describes a published table.
type TableDoc struct {
	Name    string
	About   string
	Key     string // the columns that identify a row
	Columns []Column
}

// TableDocs lists the published tables in the order of a dataset's layout.
var TableDocs = []TableDoc{
	newTableDoc[EpisodeRow]("episodes", "One row per attempt of an agent at a task, including failed attempts. Sorted by split, repo, instance_id, episode_id.",
		"episode_id", episodeColumns),
	newTableDoc[StepRow]("steps", "One row per event of an episode: the system prompt, the problem, an answer of the environment, or one tool call with its observation. "+
		"A turn with k parallel calls is k rows; only the first of them has the text, the tokens, the cost and the waiting time of the model, so plain sums are correct.",
		"episode_id, step_index", stepColumns),
	newTableDoc[BlobRow]("blobs", "Texts that are too long for their row, addressed by content. If a row of another table has a hash without the text, the hash joins here.",
		"sha256", blobColumns),
	newTableDoc[ToolSetRow]("tool_sets", "The tool definitions that agents were given.", "tool_set_sha256", toolSetColumns),
	newTableDoc[AnnotationRow]("annotations", "Facts, critiques, scores and labels that were added later to an episode or one of its steps.", "annotation_id", annotationColumns),
	newTableDoc[SelectionRow]("selection", "The decision of a named filter about each episode; one file per selection.", "episode_id", selectionColumns),
	newTableDoc[DeadLetterRow]("dead_letters", "Units of work that have no episode, and why. File: exclusions/dead-letters.parquet.", "run_id, unit_key", deadLetterColumns),
}

// Table returns the description of a table by its name.
func Table(name string) (TableDoc, bool) {
	for _, t := range TableDocs {
		if t.Name == name {
			return t, true
		}
	}
	return TableDoc{}, false
}

// section is a group of consecutive columns under one heading.
type section struct {
	heading string
	columns []columnDoc
}

type columnDoc struct{ name, unit, meaning, source, since string }

var columnTypes = map[reflect.Type]string{
	reflect.TypeFor[string]():    "utf8",
	reflect.TypeFor[bool]():      "bool",
	reflect.TypeFor[int32]():     "int32",
	reflect.TypeFor[int64]():     "int64",
	reflect.TypeFor[float64]():   "float64",
	reflect.TypeFor[time.Time](): "timestamp[us, tz=UTC]",
	reflect.TypeFor[[]string]():  "list<utf8>",
}

// newTableDoc takes names and types from the row struct T and the rest from the
// sections. It panics unless both list the same columns in the same order.
func newTableDoc[T any](name, about, key string, sections []section) TableDoc {
	t := TableDoc{Name: name, About: about, Key: key}
	row := reflect.TypeFor[T]()
	for _, s := range sections {
		for _, c := range s.columns {
			if i := len(t.Columns); i >= row.NumField() {
				panic(fmt.Sprintf("table %s: column %s is described but does not exist", name, c.name))
			}
			f := row.Field(len(t.Columns))
			col, option, _ := strings.Cut(f.Tag.Get("col"), ",")
			if col != c.name {
				panic(fmt.Sprintf("table %s: column %s is described in the place of %s", name, c.name, col))
			}
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			since := cmp.Or(c.since, "1.0.0")
			t.Columns = append(t.Columns, Column{
				Name: c.name, Type: columnTypes[ft], Required: option == "required", Unit: c.unit, Meaning: c.meaning, Source: c.source,
				Since: since, Group: s.heading,
			})
		}
	}
	if len(t.Columns) != row.NumField() {
		panic(fmt.Sprintf("table %s: column %s is not described", name, row.Field(len(t.Columns)).Tag.Get("col")))
	}
	return t
}

// Markdown returns the columns as Markdown tables, one per heading.
func (t TableDoc) Markdown() string {
	var b strings.Builder
	group := "\x00"
	for _, c := range t.Columns {
		if c.Group != group {
			group = c.Group
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			if group != "" {
				fmt.Fprintf(&b, "**%s**\n\n", group)
			}
			b.WriteString("| column | type | unit | meaning | source | since |\n| --- | --- | --- | --- | --- | --- |\n")
		}
		name := "`" + c.Name + "`"
		if c.Required {
			name = "**" + name + "**"
		}
		cells := []string{name, c.Type, c.Unit, c.Meaning, c.Source, c.Since}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}
