package arrowrec_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

var update = flag.Bool("update", false, "write the golden schemas of a new version")

// versions are all that were ever published, the present one last.
var versions = []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", schemas.SchemaVersion}

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

// goldenFile holds the schema of a table in one version.
func goldenFile(table, version string) string {
	return filepath.Join("testdata", table+"-"+version+".txt")
}

// columnsOf are the lines of a golden schema but for its title; nil if the
// table was not there yet.
func columnsOf(t *testing.T, table, version string) []string {
	t.Helper()
	raw, err := os.ReadFile(goldenFile(table, version))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")[1:]
}

// changed says how a table differs from the one that was published under its
// version, "" if it does not. Appended says that it only has further nullable
// columns, which -update may add to the golden file; any other difference is a new
// major version.
func changed(golden []string, t *arrowrec.Table) (problem string, appended bool) {
	now := strings.Split(strings.TrimSpace(describe(t)), "\n")[1:]
	diff := cmp.Diff(golden, now)
	if diff == "" {
		return "", false
	}
	appended = len(now) > len(golden) && slices.Equal(golden, now[:len(golden)])
	for _, line := range now[min(len(golden), len(now)):] {
		appended = appended && strings.HasSuffix(line, nullable)
	}
	if appended {
		return fmt.Sprintf("table %s has columns that %s lacks: run with -update\n%s", t.Name, t.Version, diff), true
	}
	return fmt.Sprintf("table %s changes columns of %s, which takes a new major version: put columns at the end, nullable, and leave the others as they are\n%s",
		t.Name, t.Version, diff), false
}

// nullable ends the line of a column that may be added within a major version.
const nullable = "nullable=true required=false"

func TestSchemasAreTheGoldenOnes(t *testing.T) {
	for _, table := range arrowrec.Tables {
		t.Run(table.Name, func(t *testing.T) {
			golden := columnsOf(t, table.Name, table.Version)
			problem, appended := changed(golden, table)
			if *update && (golden == nil || appended) {
				if err := os.WriteFile(goldenFile(table.Name, table.Version), []byte(describe(table)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if problem != "" {
				t.Error(problem)
			}
		})
	}
}

func TestOnlyNullableColumnsAreAddedToAVersion(t *testing.T) {
	type before struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
	}
	golden := strings.Split(strings.TrimSpace(describe(arrowrec.NewTable[before]("t", "1"))), "\n")[1:]
	if got, _ := changed(golden, arrowrec.NewTable[before]("t", "1")); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	type longer struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
		C *bool  `col:"c"`
	}
	type demanding struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
		C bool   `col:"c,required"`
	}
	type shorter struct {
		A string `col:"a,required"`
	}
	type retyped struct {
		A string `col:"a,required"`
		B *int64 `col:"b"`
	}
	type reordered struct {
		B *int32 `col:"b"`
		A string `col:"a,required"`
	}
	type between struct {
		A string `col:"a,required"`
		C *bool  `col:"c"`
		B *int32 `col:"b"`
	}
	type looser struct {
		A string `col:"a"`
		B *int32 `col:"b"`
	}
	for name, c := range map[string]struct {
		table    *arrowrec.Table
		appended bool
	}{
		"a nullable column": {arrowrec.NewTable[longer]("t", "1"), true},
		"a required column": {arrowrec.NewTable[demanding]("t", "1"), false},
		"a removed column":  {arrowrec.NewTable[shorter]("t", "1"), false},
		"another type":      {arrowrec.NewTable[retyped]("t", "1"), false},
		"another order":     {arrowrec.NewTable[reordered]("t", "1"), false},
		"a column between":  {arrowrec.NewTable[between]("t", "1"), false},
		"a loosened column": {arrowrec.NewTable[looser]("t", "1"), false},
	} {
		if problem, appended := changed(golden, c.table); problem == "" || appended != c.appended {
			t.Errorf("%s: %q, may be added: %t", name, problem, appended)
		}
	}
}

// Within a major version, columns are only added, nullable and at the end, so that a
// reader of any version reads all later ones.
func TestVersionsOnlyAdd(t *testing.T) {
	if slices.Contains(versions[:len(versions)-1], schemas.SchemaVersion) {
		t.Fatalf("%s is there twice: take it off the list of older versions", schemas.SchemaVersion)
	}
	for _, table := range arrowrec.Tables {
		var old []string
		for i, version := range versions {
			now := columnsOf(t, table.Name, version)
			if i > 0 && schemas.Major(version) != schemas.Major(versions[i-1]) {
				old = nil
			}
			if len(now) < len(old) || !slices.Equal(old, now[:len(old)]) {
				t.Errorf("%s %s changes columns of the version before: that is a major version", table.Name, version)
				continue
			}
			for _, line := range now[len(old):] {
				if old != nil && !strings.HasSuffix(line, nullable) {
					t.Errorf("%s %s adds a required column: %s", table.Name, version, line)
				}
			}
			old = now
		}
	}
}

// Records of schema 1.x are published in the columns of its last version: those that
// 2.0.0 removed are there, and those that came later are not.
func TestTablesOfTheFirstMajorVersion(t *testing.T) {
	for _, table := range arrowrec.Tables {
		for _, version := range []string{"1.0.0", schemas.LastV1} {
			old := table.At(version)
			if diff := cmp.Diff(columnsOf(t, table.Name, schemas.LastV1), strings.Split(strings.TrimSpace(describe(old)), "\n")[1:]); diff != "" || old.Version != schemas.LastV1 {
				t.Errorf("%s of %s is written as %s: %s", table.Name, version, old.Version, diff)
			}
		}
		if table.At("2.7.0") != table {
			t.Errorf("%s of this major version is not itself", table.Name)
		}
	}
}

// arrowNames takes Arrow's names of types to those of the description.
var arrowNames = strings.NewReplacer("list<item: utf8, nullable>", "list<utf8>")

// The description, which documents, cards and croissant.json are made of, is
// held to the Arrow schema and to the versions that brought the columns.
func TestColumnsAreDescribed(t *testing.T) {
	if len(schemas.Documented) != len(arrowrec.Tables) {
		t.Fatalf("%d tables are described, %d are published", len(schemas.Documented), len(arrowrec.Tables))
	}
	for i, table := range arrowrec.Tables {
		said := schemas.Documented[i]
		if said.Name != table.Name || len(said.Columns) != len(table.Columns) {
			t.Fatalf("%s (%d columns) is described as %s (%d)", table.Name, len(table.Columns), said.Name, len(said.Columns))
		}
		fields := table.Schema(arrowrec.Meta{}).Fields()
		since := map[string]string{} // the oldest version of all, across major ones
		for _, version := range slices.Backward(versions) {
			for _, line := range columnsOf(t, table.Name, version) {
				name, _, _ := strings.Cut(line, " ")
				since[name] = version
			}
		}
		for j, c := range said.Columns {
			if c.Name != fields[j].Name || c.Type != arrowNames.Replace(fields[j].Type.String()) || c.Required != table.Columns[j].Required {
				t.Errorf("%s.%s is described as %s %s required=%t", table.Name, fields[j].Name, c.Name, c.Type, c.Required)
			}
			if c.Since != since[c.Name] {
				t.Errorf("%s.%s is said to be there since %s, it came with %s", table.Name, c.Name, c.Since, since[c.Name])
			}
			if c.Meaning == "" || c.Source == "" || strings.ContainsAny(c.Meaning+c.Source+c.Unit, "\n|") {
				t.Errorf("%s.%s: meaning and source must be said, on one line, without bars", table.Name, c.Name)
			}
			if strings.HasPrefix(c.Name, "gold_") && c.Name != "gold_used" && c.Name != "gold_edit" && !strings.HasPrefix(c.Source, "privileged") {
				t.Errorf("%s.%s does not say that it is privileged", table.Name, c.Name)
			}
		}
	}
}

// Golden files of versions that nobody lists would be checked by nobody.
func TestEveryGoldenVersionIsListed(t *testing.T) {
	files, err := filepath.Glob("testdata/*-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		_, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".txt"), "-")
		found[version] = true
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(versions)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Error(diff)
	}
}
