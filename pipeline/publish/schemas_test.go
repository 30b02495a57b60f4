package publish_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// v1 is a directory with a run and a dataset that commit a703807 wrote. It was the last one
// with schema 1.3.0.
const v1 = "../../schemas/testdata/1.3.0"

func tableFiles(m schemas.Manifest, tables ...string) map[string]string {
	out := map[string]string{}
	for _, f := range m.Files {
		for _, table := range tables {
			if f.Table == table {
				out[f.Table+" "+f.Split] = f.SHA256
			}
		}
	}
	return out
}

// Publishing staged episodes of schema 1.x gives, byte for byte, the files that the program at that time
// wrote.
func TestStagingOfSchema1IsPublishedAsBefore(t *testing.T) {
	before, err := publish.Open(t.Context(), dir(t, filepath.Join(v1, "dataset")))
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, dir(t, t.TempDir()), dir(t, filepath.Join(v1, "run")))
	cfg.Producer = "a703807"
	run(t, cfg)
	after, err := publish.Open(t.Context(), cfg.Dest)
	if err != nil {
		t.Fatal(err)
	}
	tables := []string{"episodes", "steps", "blobs", "tool_sets"}
	want := tableFiles(before.Manifest, tables...)
	if diff := cmp.Diff(want, tableFiles(after.Manifest, tables...)); diff != "" || len(want) != 6 {
		t.Errorf("%d files, with different content: %s", len(want), diff)
	}
	for table, version := range after.Manifest.Schemas {
		if version != "1.3.0" {
			t.Errorf("table %s has schema %s", table, version)
		}
	}
	croissant, err := os.ReadFile(filepath.Join(strings.TrimPrefix(cfg.Dest.URI(), "file://"), "croissant.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(croissant), "episodes/model_terms") {
		t.Error("croissant.json does not describe a column that its files have")
	}
}

func TestMajorSchemasDoNotShareADataset(t *testing.T) {
	old := dir(t, filepath.Join(v1, "run"))
	newer := sinktest.Episode("future", 0)
	newer.Episode.SchemaVersion = "3.1.0"
	future := dir(t, t.TempDir())
	put(t, future, newer)
	mine := stage(t, "mine", 0, 2)
	for name, c := range map[string]struct {
		staging []sinks.Store
		want    []string
	}{
		"both":  {[]sinks.Store{old, mine}, []string{old.URI() + "/staging/quickstart-45f84178 has schema 1.3.0", mine.URI() + "/staging/mine has schema " + schemas.SchemaVersion}},
		"newer": {[]sinks.Store{future}, []string{future.URI(), `"3.1.0"`, "newer tracesmith"}},
	} {
		place := t.TempDir()
		_, err := publish.Publish(t.Context(), config(t, dir(t, place), c.staging...))
		if !errors.Is(err, publish.ErrSchemas) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not contain %q", name, err, want)
			}
		}
		if written := tree(t, place); len(written) > 0 {
			t.Errorf("%s: a refused publish wrote %v", name, maps.Keys(written))
		}
	}
}
