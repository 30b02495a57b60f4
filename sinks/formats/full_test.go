package formats

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// A write error must be reported, although the library drops errors between row
// groups, and no file may remain. /dev/full behaves like a full disk.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	w, err := CreateParquet[schemas.StepRow](dir, "train", arrowrec.Steps, arrowrec.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w.(*parquetShard[schemas.StepRow]).sink.file = full
	for range 100 {
		if err = w.Append([]schemas.StepRow{{Message: strings.Repeat("x", 1<<20)}}); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("appending 100 MB: %v, want ENOSPC", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files remain: %v, %v", entries, err)
	}
}

// Every name in the class lists is a column of a table.
func TestColumnClassesNameRealColumns(t *testing.T) {
	for _, names := range []map[string]bool{proseColumns, hashColumns} {
		for name := range names {
			found := false
			for _, table := range arrowrec.Tables {
				c, ok := table.Column(name)
				found = found || ok && (c.Kind == arrowrec.Text || c.Kind == arrowrec.TextList)
			}
			if !found {
				t.Errorf("no table has the text column %s", name)
			}
		}
	}
}
