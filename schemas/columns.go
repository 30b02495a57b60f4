package schemas

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Column says what one column of a published table holds. Name, Type and
// Required are those of the row struct; the rest is said once, here, and read by
// docs/reference/columns.md, the dataset card and croissant.json.
type Column struct {
	Name     string
	Type     string // as Arrow writes it: utf8, bool, int32, int64, float64, timestamp[us, tz=UTC], list<utf8>
	Required bool   // never null in a published row
	Unit     string // "" where there is none: words, names, hashes
	Meaning  string
	Source   string // who knows it, or the formula
	Since    string // schema version that brought it
	Group    string // heading it stands under
}

// TableDoc says what a published table holds.
type TableDoc struct {
	Name    string
	About   string
	Key     string // what is different in every row
	Columns []Column
}

// Documented lists the published tables in the order of a dataset's layout.
var Documented = []TableDoc{
	documented[EpisodeRow]("episodes", "One row per attempt of an agent at a task, failed ones too. Sorted by split, repo, instance_id, episode_id.",
		"episode_id", episodeColumns),
	documented[StepRow]("steps", "One row per event of an episode: the system prompt, the problem, an answer of the environment, or one tool call with its observation. "+
		"A turn with k parallel calls is k rows; text, tokens, cost and waiting for the model stand on the first of them, so plain sums are right.",
		"episode_id, step_index", stepColumns),
	documented[BlobRow]("blobs", "Texts that are too long for their row, addressed by content. A sha256 column of another table that has no text in its row joins here.",
		"sha256", blobColumns),
	documented[ToolSetRow]("tool_sets", "The tool definitions that agents were shown.", "tool_set_sha256", toolSetColumns),
	documented[AnnotationRow]("annotations", "What was said later about an episode or one of its steps: facts, critiques, scores, labels.", "annotation_id", annotationColumns),
	documented[SelectionRow]("selection", "What a named filter decided about each episode; one file per selection.", "episode_id", selectionColumns),
	documented[DeadLetterRow]("dead_letters", "Units of work that have no episode, and why. File exclusions/dead-letters.parquet.", "run_id, unit_key", deadLetterColumns),
}

// Table finds the description of a table.
func Table(name string) (TableDoc, bool) {
	for _, t := range Documented {
		if t.Name == name {
			return t, true
		}
	}
	return TableDoc{}, false
}

// section is a run of columns under one heading.
type section struct {
	heading string
	columns []said
}

// said is what is written about a column: name, unit, meaning, source, since.
type said struct{ name, unit, meaning, source, since string }

var columnTypes = map[reflect.Type]string{
	reflect.TypeFor[string]():    "utf8",
	reflect.TypeFor[bool]():      "bool",
	reflect.TypeFor[int32]():     "int32",
	reflect.TypeFor[int64]():     "int64",
	reflect.TypeFor[float64]():   "float64",
	reflect.TypeFor[time.Time](): "timestamp[us, tz=UTC]",
	reflect.TypeFor[[]string]():  "list<utf8>",
}

// documented joins what is said with the row struct. A column that is not
// described, or described elsewhere than it stands, is a programming error.
func documented[T any](name, about, key string, sections []section) TableDoc {
	t := TableDoc{Name: name, About: about, Key: key}
	row := reflect.TypeFor[T]()
	for _, s := range sections {
		for _, c := range s.columns {
			if i := len(t.Columns); i >= row.NumField() {
				panic(fmt.Sprintf("table %s: column %s is described and not there", name, c.name))
			}
			f := row.Field(len(t.Columns))
			col, option, _ := strings.Cut(f.Tag.Get("col"), ",")
			if col != c.name {
				panic(fmt.Sprintf("table %s: column %s is described where %s stands", name, c.name, col))
			}
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			since := c.since
			if since == "" {
				since = "1.0.0"
			}
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

// Markdown writes the columns as tables of Markdown, one per heading.
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
