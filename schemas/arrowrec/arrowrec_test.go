package arrowrec_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

var update = flag.Bool("update", false, "rewrite the golden schemas")

// describe is the contract of a table as text: one column per line.
func describe(t *arrowrec.Table) string {
	var b strings.Builder
	s := t.Schema(arrowrec.Meta{Producer: "golden"})
	fmt.Fprintf(&b, "# %s %s\n", t.Name, t.Version)
	for i, f := range s.Fields() {
		fmt.Fprintf(&b, "%s %s nullable=%t required=%t\n", f.Name, f.Type, f.Nullable, t.Columns[i].Required)
	}
	return b.String()
}

func TestSchemasAreTheGoldenOnes(t *testing.T) {
	for _, table := range arrowrec.Tables {
		t.Run(table.Name, func(t *testing.T) {
			path := filepath.Join("testdata", table.Name+"-"+table.Version+".txt")
			got := describe(table)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the published schema changed: raise schemas.SchemaVersion, then run with -update\n%s", diff)
			}
		})
	}
}

func TestAChangedStructChangesTheDescription(t *testing.T) {
	type before struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
	}
	type after struct {
		A string `col:"a,required"`
		B *int64 `col:"b"`
	}
	type reordered struct {
		B *int32 `col:"b"`
		A string `col:"a,required"`
	}
	base := describe(arrowrec.NewTable[before]("t", "1"))
	if base == describe(arrowrec.NewTable[after]("t", "1")) || base == describe(arrowrec.NewTable[reordered]("t", "1")) {
		t.Error("a changed row struct leaves the golden description as it was")
	}
}

func TestUnsupportedFieldPanics(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "uint") {
			t.Errorf("want a panic naming the type, got %v", r)
		}
	}()
	type bad struct {
		A uint `col:"a"`
	}
	arrowrec.NewTable[bad]("t", "1")
}

func TestBuilderWritesEveryKindAndLeaksNothing(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := arrowrec.NewBuilder[schemas.EpisodeRow](mem, arrowrec.Episodes, arrowrec.Meta{Producer: "p"})
	defer b.Release()

	at := time.Date(2026, 3, 4, 5, 6, 7, 891000, time.UTC)
	row := schemas.EpisodeRow{
		EpisodeID: "e\x00é", Attempt: 3, CreatedAt: at, Resolved: new(true), Reward: new(0.5),
		PatchBytes: new(int64(7)), ToolNames: []string{"pdb", ""}, PatchFiles: nil,
	}
	if err := b.Append(&row); err != nil {
		t.Fatal(err)
	}
	if b.RawBytes() == 0 {
		t.Error("no raw bytes counted")
	}
	rec := b.Record()
	defer rec.Release()

	col := func(name string) arrow.Array { return rec.Column(rec.Schema().FieldIndices(name)[0]) }
	if got := col("episode_id").(*array.String).Value(0); got != row.EpisodeID {
		t.Errorf("episode_id = %q", got)
	}
	if got := col("created_at").(*array.Timestamp).Value(0).ToTime(arrow.Microsecond); !got.Equal(at) {
		t.Errorf("created_at = %v, want %v", got, at)
	}
	if !col("resolved").(*array.Boolean).Value(0) || col("reward").(*array.Float64).Value(0) != 0.5 {
		t.Error("resolved or reward lost")
	}
	if !col("patch_files").IsNull(0) {
		t.Error("an absent list must be null")
	}
	if col("satisfied_criteria").IsNull(0) {
		t.Error("a required list must be empty, not null")
	}
	if got := col("tool_names").(*array.List).ValueStr(0); got != `["pdb",""]` {
		t.Errorf("tool_names = %s", got)
	}
	if !col("score").IsNull(0) {
		t.Error("an absent number must be null, not zero")
	}
	md := rec.Schema().Metadata()
	want := map[string]string{
		"tracesmith.schema": "trajectory", "tracesmith.schema_version": schemas.SchemaVersion,
		"tracesmith.table": "episodes", "tracesmith.producer": "p",
	}
	if diff := cmp.Diff(want, md.ToMap()); diff != "" {
		t.Error(diff)
	}
}

func TestBuilderRefusesInvalidUTF8(t *testing.T) {
	for name, row := range map[string]schemas.StepRow{
		"observation": {Observation: new("a\xff")},
		"targets":     {Targets: []string{"ok", "\xc3("}},
	} {
		b := arrowrec.NewBuilder[schemas.StepRow](memory.NewGoAllocator(), arrowrec.Steps, arrowrec.Meta{})
		if err := b.Append(&row); err == nil || !strings.Contains(err.Error(), "column "+name) {
			t.Errorf("%s: got %v, want an error naming the column", name, err)
		}
		b.Release()
	}
}

func TestValueAndSetValueAreInverse(t *testing.T) {
	in := schemas.StepRow{EpisodeID: "e", StepIndex: 4, TurnIndex: new(int32(0)), TS: new(time.UnixMicro(5).UTC()), Targets: []string{}, Train: true}
	var out schemas.StepRow
	for _, c := range arrowrec.Steps.Columns {
		c.SetValue(reflect.ValueOf(&out).Elem(), c.Value(reflect.ValueOf(&in).Elem()))
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
}
