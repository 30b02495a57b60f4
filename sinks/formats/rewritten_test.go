package formats_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// A table that another program has rewritten is not reported as damaged, so that users do not delete it.
func TestATableOfAnotherProgramIsNotCalledDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[struct {
		ID string `parquet:"episode_id"`
	}](f, parquet.Compression(&parquet.Snappy))
	if _, err := w.Write([]struct {
		ID string `parquet:"episode_id"`
	}{{"a"}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var got error
	for _, err := range formats.Read[schemas.StepRow](path, arrowrec.Steps) {
		got = err
	}
	if _, corrupt := errors.AsType[*formats.CorruptError](got); corrupt || got == nil {
		t.Fatalf("got %v, want an error other than CorruptError", got)
	}
	for _, want := range []string{path, "column episode_id is compressed with SNAPPY", "another program", "original file"} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
