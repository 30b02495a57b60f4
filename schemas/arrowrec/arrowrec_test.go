package arrowrec_test

import (
	"fmt"
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
