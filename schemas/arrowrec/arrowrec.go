// Package arrowrec maps the row structs of schemas to Arrow: one Table per
// published table, derived by reflection from the col tags, so that the structs
// are the only place that declares columns.
package arrowrec

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/tracesmith/tracesmith/schemas"
)

// Kind is the type of a column.
type Kind uint8

// The kinds that a row struct may use, with their Arrow types.
const (
	Text      Kind = iota // utf8
	Bool                  // bool
	Int32                 // int32
	Int64                 // int64
	Float64               // float64
	Timestamp             // timestamp[us, UTC]
	TextList              // list<utf8>
)

var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[string]():    Text,
	reflect.TypeFor[bool]():      Bool,
	reflect.TypeFor[int32]():     Int32,
	reflect.TypeFor[int64]():     Int64,
	reflect.TypeFor[float64]():   Float64,
	reflect.TypeFor[time.Time](): Timestamp,
	reflect.TypeFor[[]string]():  TextList,
}

var arrowTypes = map[Kind]arrow.DataType{
	Text:      arrow.BinaryTypes.String,
	Bool:      arrow.FixedWidthTypes.Boolean,
	Int32:     arrow.PrimitiveTypes.Int32,
	Int64:     arrow.PrimitiveTypes.Int64,
	Float64:   arrow.PrimitiveTypes.Float64,
	Timestamp: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	TextList:  arrow.ListOf(arrow.BinaryTypes.String),
}

// Column is one column of a Table.
type Column struct {
	Name     string
	Kind     Kind
	Required bool
	Field    int  // index in the row struct; -1: a removed column, always null
	Pointer  bool // the field is a pointer; nil is null
}

// Table describes one published table.
type Table struct {
	Name    string
	Version string // version of its schema
	Columns []Column
}

// The published tables.
var (
	Episodes    = NewTable[schemas.EpisodeRow]("episodes", schemas.SchemaVersion)
	Steps       = NewTable[schemas.StepRow]("steps", schemas.SchemaVersion)
	Blobs       = NewTable[schemas.BlobRow]("blobs", schemas.SchemaVersion)
	ToolSets    = NewTable[schemas.ToolSetRow]("tool_sets", schemas.SchemaVersion)
	Annotations = NewTable[schemas.AnnotationRow]("annotations", schemas.SchemaVersion)
	Selection   = NewTable[schemas.SelectionRow]("selection", schemas.SchemaVersion)
	DeadLetters = NewTable[schemas.DeadLetterRow]("dead_letters", schemas.SchemaVersion)
)

// Tables lists all published tables.
var Tables = []*Table{Episodes, Steps, Blobs, ToolSets, Annotations, Selection, DeadLetters}

// NewTable returns the table whose rows are structs of type T. It panics if a field
// has no col tag or a type that no column can have.
func NewTable[T any](name, version string) *Table {
	t := &Table{Name: name, Version: version}
	row := reflect.TypeFor[T]()
	for i := range row.NumField() {
		f := row.Field(i)
		col, option, _ := strings.Cut(f.Tag.Get("col"), ",")
		c := Column{Name: col, Required: option == "required", Field: i}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft, c.Pointer = ft.Elem(), true
		}
		kind, ok := kinds[ft]
		if !ok || col == "" {
			panic(fmt.Sprintf("table %s: field %s of type %s has no column name, or no column can have its type", name, f.Name, f.Type))
		}
		c.Kind = kind
		t.Columns = append(t.Columns, c)
	}
	return t
}

// At returns the table as files of the given schema version have it; see schemas.TableDoc.At.
func (t *Table) At(version string) *Table {
	doc, documented := schemas.Table(t.Name)
	if !documented || schemas.Major(version) >= schemas.Major(t.Version) {
		return t
	}
	old := &Table{Name: t.Name, Version: schemas.LastV1}
	for _, c := range doc.At(version).Columns {
		column, found := t.Column(c.Name)
		if !found {
			column = Column{Name: c.Name, Kind: kindOf(c.Type), Field: -1}
		}
		old.Columns = append(old.Columns, column)
	}
	return old
}

func kindOf(arrowType string) Kind {
	for kind, t := range arrowTypes {
		if t.String() == arrowType {
			return kind
		}
	}
	panic("no column has the type " + arrowType)
}

// Metadata keys of every schema; the value of KeySchema is SchemaName.
const (
	KeySchema         = "tracesmith.schema"
	KeySchemaVersion  = "tracesmith.schema_version"
	KeyTable          = "tracesmith.table"
	KeyProducer       = "tracesmith.producer"
	KeyDatasetVersion = "tracesmith.dataset_version"
	SchemaName        = "trajectory"
)

// Meta describes the origin of a file. DatasetVersion is empty for a shard that
// several dataset versions share.
type Meta struct {
	Producer       string
	DatasetVersion string
}

// Schema returns the table's Arrow schema. Every column is nullable, because
// readers that match types strictly (Hugging Face datasets) expect it.
func (t *Table) Schema(m Meta) *arrow.Schema {
	fields := make([]arrow.Field, len(t.Columns))
	for i, c := range t.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowTypes[c.Kind], Nullable: true}
	}
	keys := []string{KeySchema, KeySchemaVersion, KeyTable, KeyProducer}
	values := []string{SchemaName, t.Version, t.Name, m.Producer}
	if m.DatasetVersion != "" {
		keys, values = append(keys, KeyDatasetVersion), append(values, m.DatasetVersion)
	}
	md := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &md)
}

// Column returns a column by its name.
func (t *Table) Column(name string) (Column, bool) {
	for _, c := range t.Columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column{}, false
}

// Value returns the column's value in row, a struct of the table's row type: nil
// for null, otherwise a string, bool, int32, int64, float64, time.Time or []string.
// A required list is never null.
func (c Column) Value(row reflect.Value) any {
	if c.Field < 0 {
		return nil
	}
	f := row.Field(c.Field)
	if c.Pointer {
		if f.IsNil() {
			return nil
		}
		f = f.Elem()
	}
	if c.Kind == TextList && f.IsNil() {
		if c.Required {
			return []string{}
		}
		return nil
	}
	return f.Interface()
}

// SetValue sets the column's value in row, which must be addressable. v must be nil
// or have the column's Go type.
func (c Column) SetValue(row reflect.Value, v any) {
	if c.Field < 0 {
		return
	}
	f := row.Field(c.Field)
	if v == nil {
		f.SetZero()
		return
	}
	if c.Pointer {
		p := reflect.New(f.Type().Elem())
		p.Elem().Set(reflect.ValueOf(v))
		f.Set(p)
		return
	}
	f.Set(reflect.ValueOf(v))
}
