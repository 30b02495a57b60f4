package formats_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

var meta = arrowrec.Meta{Producer: "tracesmith test"}

func writeSteps(t *testing.T, dir string, episodes ...[]schemas.StepRow) formats.ShardInfo {
	t.Helper()
	return write(t, dir, arrowrec.Steps, episodes...)
}

func write[T any](t *testing.T, dir string, table *arrowrec.Table, units ...[]T) formats.ShardInfo {
	t.Helper()
	w, err := formats.CreateParquet[T](dir, "train", table, meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range units {
		if err := w.Append(rows); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func collect[T any](t *testing.T, path string, table *arrowrec.Table) []T {
	t.Helper()
	var out []T
	for row, err := range formats.Read[T](path, table) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func TestRowsComeBackExactly(t *testing.T) {
	golden := sinktest.Episode("run", 1)
	dir := t.TempDir()
	e := write(t, dir, arrowrec.Episodes, []schemas.EpisodeRow{golden.Episode})
	s := writeSteps(t, dir, golden.Steps)

	golden.Episode.SatisfiedCriteria = []string{} // required lists are empty, not null
	if diff := cmp.Diff([]schemas.EpisodeRow{golden.Episode}, collect[schemas.EpisodeRow](t, e.Path, arrowrec.Episodes)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(golden.Steps, collect[schemas.StepRow](t, s.Path, arrowrec.Steps)); diff != "" {
		t.Error(diff)
	}
	if s.Rows != int64(len(golden.Steps)) || s.RowGroups != 1 || s.Uncompressed < 1<<20 {
		t.Errorf("info = %+v", s)
	}
	body, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	if schemas.HashBytes(body) != s.SHA256 || int64(len(body)) != s.Bytes {
		t.Error("the recorded hash or size differs from the file's")
	}
	if want := "train-" + s.SHA256[:16] + ".parquet"; filepath.Base(s.Path) != want {
		t.Errorf("named %s, want %s", filepath.Base(s.Path), want)
	}
}

func TestReadWhereFindsTheRowsOfAnEpisode(t *testing.T) {
	var units [][]schemas.StepRow
	for n := range 12 { // 2 MB each
		steps := sinktest.Episode("run", n).Steps
		steps[0].Message = strings.Repeat("x", 2<<20)
		units = append(units, steps)
	}
	s := writeSteps(t, t.TempDir(), units...)
	if s.RowGroups < 2 {
		t.Fatalf("%d row groups, want several", s.RowGroups)
	}
	for n, want := range units {
		var got []schemas.StepRow
		for row, err := range formats.ReadWhere[schemas.StepRow](s.Path, arrowrec.Steps, "episode_id", want[0].EpisodeID) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("episode %d: %s", n, diff)
		}
	}
	for row, err := range formats.ReadWhere[schemas.StepRow](s.Path, arrowrec.Steps, "episode_id", "absent") {
		t.Errorf("row %v, error %v for an id that no row has", row, err)
	}
	for _, err := range formats.ReadWhere[schemas.StepRow](s.Path, arrowrec.Steps, "nothing", "x") {
		if err == nil || !strings.Contains(err.Error(), "it lacks column nothing") {
			t.Errorf("error %v", err)
		}
	}
}

func TestEqualRowsGiveEqualBytes(t *testing.T) {
	rows := sinktest.Episode("run", 1).Steps
	a, b := writeSteps(t, t.TempDir(), rows), writeSteps(t, t.TempDir(), rows)
	if a.SHA256 != b.SHA256 {
		t.Error("two writes of equal rows differ")
	}
	other := sinktest.Episode("run", 2).Steps
	if c := writeSteps(t, t.TempDir(), other); c.SHA256 == a.SHA256 {
		t.Error("different rows have the same hash")
	}
}

func TestEmptyTableIsAValidFile(t *testing.T) {
	info := writeSteps(t, t.TempDir())
	if got := collect[schemas.StepRow](t, info.Path, arrowrec.Steps); len(got) != 0 {
		t.Errorf("read %d rows", len(got))
	}
}

// The independent reader reads the limits from the footer.
func TestRowGroupsPagesAndStatistics(t *testing.T) {
	dir := t.TempDir()
	w, err := formats.CreateParquet[schemas.StepRow](dir, "train", arrowrec.Steps, meta)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	noise := func() string { // hard to compress, so that pages fill up
		raw := make([]byte, 20_000)
		_, _ = random.Read(raw)
		return hex.EncodeToString(raw)
	}
	for ep := range 115 { // 92 MB
		rows := make([]schemas.StepRow, 20)
		for i := range rows {
			rows[i] = schemas.StepRow{EpisodeID: fmt.Sprintf("%032d", ep), StepIndex: int32(i), Split: "train", Source: "agent",
				Message: "secret thought", Observation: new(noise())}
		}
		if err := w.Append(rows); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(info.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pf, err := parquet.OpenFile(f, info.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(pf.RowGroups()); n != info.RowGroups || n != 3 {
		t.Errorf("%d row groups, info says %d, want 3", n, info.RowGroups)
	}
	for i, g := range pf.Metadata().RowGroups {
		limit := int64(64 << 20)
		if i == 0 {
			limit = 16 << 20
		}
		if g.TotalByteSize > limit+(1<<20) {
			t.Errorf("row group %d has %d uncompressed bytes, limit %d", i, g.TotalByteSize, limit)
		}
		checkColumns(t, g)
		column := pf.RowGroups()[i].ColumnChunks()[leaf(pf, "observation")]
		pages := column.Pages()
		for {
			p, err := pages.ReadPage()
			if err != nil {
				break
			}
			if p.Size() > 8<<20 {
				t.Errorf("a page of %d bytes", p.Size())
			}
			parquet.Release(p)
		}
		pages.Close()
	}
	for key, want := range map[string]string{arrowrec.KeyTable: "steps", arrowrec.KeyProducer: "tracesmith test", arrowrec.KeySchema: "trajectory"} {
		if got, _ := pf.Lookup(key); got != want {
			t.Errorf("footer key %s = %q", key, got)
		}
	}
	if _, ok := pf.Lookup("ARROW:schema"); !ok {
		t.Error("the Arrow schema is not stored")
	}
}

// checkColumns checks that key columns have statistics, that no statistics contain text, and the compression.
func checkColumns(t *testing.T, g format.RowGroup) {
	t.Helper()
	for _, c := range g.Columns {
		name := c.MetaData.PathInSchema[0]
		stats := c.MetaData.Statistics
		switch name {
		case "message", "observation", "targets", "arguments_json":
			if len(stats.MinValue)+len(stats.MaxValue)+len(stats.Min)+len(stats.Max) > 0 {
				t.Errorf("column %s has text in its statistics", name)
			}
		case "episode_id", "split":
			if len(stats.MinValue) == 0 {
				t.Errorf("column %s has no statistics to prune by", name)
			}
			if c.MetaData.DictionaryPageOffset == 0 {
				t.Errorf("column %s has no dictionary", name)
			}
		}
		if got := c.MetaData.Codec.String(); got != "ZSTD" {
			t.Errorf("column %s is compressed with %s", name, got)
		}
	}
}

func leaf(f *parquet.File, name string) int {
	for i, path := range f.Schema().Columns() {
		if path[0] == name {
			return i
		}
	}
	return -1
}

func TestInvalidUTF8LeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := formats.CreateParquet[schemas.StepRow](dir, "train", arrowrec.Steps, meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append([]schemas.StepRow{{Message: "\xff"}}); err == nil || !strings.Contains(err.Error(), "message") {
		t.Errorf("got %v, want an error naming the column", err)
	}
	wantNoFiles(t, dir)
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w, _ := formats.CreateParquet[schemas.StepRow](dir, "train", arrowrec.Steps, meta)
	if err := w.Append(sinktest.Episode("r", 1).Steps); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	wantNoFiles(t, dir)
}

func wantNoFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("files remain: %v, %v", entries, err)
	}
}

func TestDamagedFilesGiveOneClearError(t *testing.T) {
	dir := t.TempDir()
	info := writeSteps(t, dir, sinktest.Episode("r", 1).Steps)
	good, err := os.ReadFile(info.Path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 0xff
		return b
	}
	cases := map[string][]byte{
		"empty": {}, "text": []byte("hello, this is no parquet"), "cut": good[:len(good)/2], "footer": flip(len(good) - 200),
		"length": flip(len(good) - 6), "magic": flip(0),
	}
	for name, body := range cases {
		path := filepath.Join(dir, name+".parquet")
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		var got error
		for _, err := range formats.Read[schemas.StepRow](path, arrowrec.Steps) {
			got = err
		}
		var corrupt *formats.CorruptError
		if !errors.As(got, &corrupt) || !strings.Contains(got.Error(), path) {
			t.Errorf("%s: %v, want a CorruptError naming the file", name, got)
		}
	}
	for _, err := range formats.Read[schemas.EpisodeRow](info.Path, arrowrec.Episodes) {
		if err == nil || !strings.Contains(err.Error(), `table "steps"`) {
			t.Errorf("steps read as episodes: %v", err)
		}
	}
	for _, err := range formats.Read[schemas.StepRow](filepath.Join(dir, "absent"), arrowrec.Steps) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("absent file: %v", err)
		}
	}
}

// A file of a later minor version has unknown columns, and a file of an earlier one
// lacks some.
func TestUnknownColumnsAreSkippedAndAbsentOnesNull(t *testing.T) {
	type other struct {
		EpisodeID string   `col:"episode_id,required"`
		Added     []string `col:"added_later"`
		StepIndex int32    `col:"step_index,required"`
	}
	table := arrowrec.NewTable[other]("steps", "1.9.0")
	info := write(t, t.TempDir(), table, []other{{"e", []string{"x", "y"}, 7}, {"f", nil, 8}})
	want := []schemas.StepRow{{EpisodeID: "e", StepIndex: 7}, {EpisodeID: "f", StepIndex: 8}}
	if diff := cmp.Diff(want, collect[schemas.StepRow](t, info.Path, arrowrec.Steps), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	major := arrowrec.NewTable[other]("steps", "3.0.0")
	info = write(t, t.TempDir(), major, []other{{"e", nil, 1}})
	for _, err := range formats.Read[schemas.StepRow](info.Path, arrowrec.Steps) {
		if err == nil || !strings.Contains(err.Error(), `schema version "3.0.0"`) {
			t.Errorf("a later major version: %v", err)
		}
	}
}

func FuzzReadSteps(f *testing.F) {
	dir := f.TempDir()
	w, err := formats.CreateParquet[schemas.StepRow](dir, "x", arrowrec.Steps, meta)
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Append([]schemas.StepRow{{EpisodeID: "e", Message: "m", Targets: []string{"a", "b"}}}); err != nil {
		f.Fatal(err)
	}
	info, err := w.Close()
	if err != nil {
		f.Fatal(err)
	}
	good, _ := os.ReadFile(info.Path)
	f.Add(good)
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, body []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		for range formats.Read[schemas.StepRow](path, arrowrec.Steps) {
		}
	})
}
