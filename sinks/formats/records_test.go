package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

type foreignRow struct {
	Name  string   `parquet:"name,snappy"`
	Maybe *string  `parquet:"maybe,optional"`
	Count int32    `parquet:"count"`
	Share float64  `parquet:"share"`
	Flag  bool     `parquet:"flag"`
	Names []string `parquet:"names,list,gzip"`
	Inner struct {
		A []string `parquet:"a,list"`
	} `parquet:"inner"`
	Map map[string]string `parquet:"map,optional"`
}

func TestRecordsOfAnyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	there := "there"
	rows := make([]foreignRow, 200)
	rows[0] = foreignRow{Name: "a", Maybe: &there, Count: 3, Share: 0.5, Flag: true, Names: []string{"x", "y"}}
	rows[0].Inner.A = []string{"deep"}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for r, err := range formats.Records(path) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != len(rows) {
		t.Fatalf("%d rows, want %d", len(got), len(rows))
	}
	delete(got[0], "map")
	want := map[string]any{"name": "a", "maybe": "there", "count": int64(3), "share": 0.5, "flag": true,
		"names": []any{"x", "y"}, "inner": map[string]any{"a": []any{"deep"}}}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if _, there := got[1]["maybe"]; there {
		t.Errorf("a null column is present: %v", got[1])
	}
	for range formats.Records(path) {
		break // stopping early must not panic
	}
}

// Records also reads the tables of a dataset, including lists, times and columns that
// contain only nulls.
func TestRecordsOfDatasetTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dead := []schemas.DeadLetterRow{{RunID: "r", UnitKey: "u", Stage: "rollout", State: "failed", Attempts: 2, FirstAt: &now}, {RunID: "r", UnitKey: "v", Stage: "publish", State: "filtered"}}
	e := sinktest.Episode("run", 1)
	for path, want := range map[string]int{
		write(t, t.TempDir(), arrowrec.DeadLetters, dead).Path: 2, write(t, t.TempDir(), arrowrec.Episodes, []schemas.EpisodeRow{e.Episode}).Path: 1,
		write(t, t.TempDir(), arrowrec.Steps, e.Steps).Path: len(e.Steps),
	} {
		n := 0
		for r, err := range formats.Records(path) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; r["run_id"] == nil {
				t.Errorf("a row without run_id: %v", r)
			}
		}
		if n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}
}

// For any change of a byte, reading the file ends with rows or an error.
func TestRecordsOfDamagedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := parquet.WriteFile(path, []foreignRow{{Name: "a", Names: []string{"b"}}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 7 // make full flips every byte
	}
	damaged, tried := 0, 0
	for i := 0; i < len(whole); i += step {
		tried++
		bad := append([]byte{}, whole...)
		bad[i] ^= 0xff
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range formats.Records(path) {
			if err != nil {
				damaged++
				if !strings.Contains(err.Error(), path) {
					t.Errorf("byte %d: %v does not name the file", i, err)
				}
				break
			}
		}
	}
	if damaged < tried/4 {
		t.Errorf("only %d of %d damaged files were detected", damaged, tried)
	}
}
