package publish_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// parquets returns the names of all Parquet files below root: what the pattern
// **/*.parquet finds.
func parquets(t *testing.T, root string) []string {
	t.Helper()
	out := []string{}
	for rel := range tree(t, root) {
		if strings.HasSuffix(rel, ".parquet") {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// latestParquets returns the names of the Parquet files in the manifest of the latest version.
func latestParquets(t *testing.T, root string) []string {
	t.Helper()
	d, err := publish.Open(t.Context(), dir(t, root))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out := []string{}
	for _, f := range d.Manifest.Files {
		if f.Table != "" {
			out = append(out, f.Path)
		}
	}
	slices.Sort(out)
	return out
}

// wantRoot checks that the Parquet files below root are those of the latest version, that
// they contain n episodes, and that the card is that of the given version.
func wantRoot(t *testing.T, root string, version string, n int) {
	t.Helper()
	if diff := cmp.Diff(latestParquets(t, root), parquets(t, root)); diff != "" {
		t.Errorf("the Parquet files are not those of the latest version: %s", diff)
	}
	ids := map[string]bool{}
	rows := 0
	for _, rel := range parquets(t, root) {
		if strings.HasPrefix(rel, "data/episodes/") {
			for _, e := range records[schemas.EpisodeRow](t, arrowrec.Episodes, filepath.Join(root, rel)) {
				ids[e.EpisodeID] = true
				rows++
			}
		}
	}
	if rows != n || len(ids) != n {
		t.Errorf("%d rows of %d episodes at the root, want %d", rows, len(ids), n)
	}
	card, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil || !strings.Contains(string(card), "version "+version) {
		t.Errorf("the card at the root is not that of version %s: %v", version, err)
	}
}

func TestRootHasOnlyTheLatestVersion(t *testing.T) {
	root := t.TempDir()
	for n := 2; n <= 4; n++ {
		rep := run(t, config(t, dir(t, root), stage(t, "run", 0, n)))
		wantRoot(t, root, rep.Version, n)
	}
	own := filepath.Join(root, "data", "mine.parquet") // a file of the user
	mustWrite(t, own, []byte("x"))
	first := run(t, config(t, dir(t, root), stage(t, "run", 0, 2))) // points back at the first version
	if err := os.Remove(own); err != nil {
		t.Fatalf("publish removed a file of the user: %v", err)
	}
	wantRoot(t, root, first.Version, 2)
	if got := audit(t, dir(t, root)); len(got.Findings) != 0 || len(got.Versions) != 3 {
		t.Errorf("%+v", got)
	}
}

// Publishing again restores missing copies at the root, removes files of earlier versions there, and keeps
// all versions.
func TestPublishingAgainRestoresTheRoot(t *testing.T) {
	root := t.TempDir()
	run(t, config(t, dir(t, root), stage(t, "run", 0, 2)))
	old := parquets(t, root)
	staging := stage(t, "run", 0, 3)
	rep := run(t, config(t, dir(t, root), staging))
	want := tree(t, root)
	for rel := range want {
		if rel[0] == '.' || rel == "dataset.json" || rel == "lease.json" || rel == "latest.json" {
			continue
		}
		if err := os.Remove(filepath.Join(root, rel)); err != nil {
			t.Fatal(err)
		}
		if got := audit(t, dir(t, root)); !slices.ContainsFunc(got.Findings, func(f publish.Finding) bool {
			return f.Object == rel && f.Problem == publish.Missing && strings.Contains(f.Detail, "publish again")
		}) {
			t.Errorf("without %s: %+v", rel, got.Findings)
		}
		if again := run(t, config(t, dir(t, root), staging)); !again.AlreadyPublished || again.Version != rep.Version {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff(want, tree(t, root)); diff != "" {
			t.Errorf("publishing again after removing %s: %s", rel, diff)
		}
	}
	old = slices.DeleteFunc(old, func(rel string) bool { return want[rel] != "" })
	stale := old[0] // a file that a publish would leave if it was killed before removing it
	mustWrite(t, filepath.Join(root, stale), []byte("x"))
	if got := audit(t, dir(t, root)); len(got.Findings) != 1 || got.Findings[0].Object != stale || !strings.Contains(got.Findings[0].Detail, "earlier version") {
		t.Errorf("with a file of an earlier version: %+v", got.Findings)
	}
	run(t, config(t, dir(t, root), staging))
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("publishing again kept a file of an earlier version: %s", diff)
	}
}

// If a publish is killed while it replaces one version with another, the next publish of either version
// repairs the root.
func TestPublishAfterKillBetweenVersions(t *testing.T) {
	first, second := stage(t, "run", 0, 2), stage(t, "run", 1, 2)
	whole := t.TempDir()
	a := run(t, config(t, dir(t, whole), first))
	before := tree(t, whole)
	var roots []string
	for {
		root, writes := t.TempDir(), len(roots)
		for rel := range before {
			copyFile(t, filepath.Join(whole, rel), filepath.Join(root, rel))
		}
		dest := &dyingStore{Store: dir(t, root)}
		dest.remaining.Store(int32(writes))
		_, err := publish.Publish(t.Context(), config(t, dest, second))
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if d, err := publish.Open(t.Context(), dir(t, root)); err != nil || d.Verify(t.Context()) != nil {
			t.Errorf("after %d writes the dataset cannot be read: %v", writes, err)
		}
		expire(t, dir(t, root))
		roots = append(roots, root)
	}
	if len(roots) < 20 {
		t.Errorf("a publish needs only %d writes, want more to interrupt", len(roots))
	}
	for writes, root := range roots { // in parallel, because each publish waits until the lease of the killed one expires
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			if writes%2 == 0 {
				b := run(t, config(t, dir(t, root), second))
				wantRoot(t, root, b.Version, 2)
				return
			}
			run(t, config(t, dir(t, root), first))
			wantRoot(t, root, a.Version, 2)
		})
	}
}

// A dataset of layout 1, which commit a703807 wrote, can be read and verified. Publishing to it does not
// change its version.
func TestDatasetsOfLayout1StayReadable(t *testing.T) {
	root := t.TempDir()
	for rel := range tree(t, filepath.Join(v1, "dataset")) {
		copyFile(t, filepath.Join(v1, "dataset", rel), filepath.Join(root, rel))
	}
	d, err := publish.Open(t.Context(), dir(t, root))
	if err == nil {
		err = d.Verify(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	old := d.Manifest.Version
	alone, err := publish.Open(t.Context(), dir(t, filepath.Join(root, old)))
	if err == nil {
		err = alone.Verify(t.Context())
	}
	if err != nil {
		t.Errorf("the version by itself: %v", err)
	}
	if got := audit(t, dir(t, root)); len(got.Findings) != 0 || !slices.Equal(got.Versions, []string{old}) {
		t.Errorf("%+v", got)
	}
	before := tree(t, filepath.Join(root, old))
	cfg := config(t, dir(t, root), dir(t, filepath.Join(v1, "run")))
	cfg.Name, cfg.Producer = d.Manifest.Dataset, d.Manifest.Producer.Version
	now := run(t, cfg)
	if now.Version == old || now.Replaced != old || now.Copied == 0 {
		t.Errorf("version %s after %s, %d files copied", now.Version, old, now.Copied)
	}
	if diff := cmp.Diff(before, tree(t, filepath.Join(root, old))); diff != "" {
		t.Errorf("publishing changed a version of layout 1: %s", diff)
	}
	if got := audit(t, dir(t, root)); len(got.Findings) != 0 || len(got.Versions) != 2 {
		t.Errorf("%+v", got)
	}
	claim, err := os.ReadFile(filepath.Join(root, "dataset.json"))
	if err != nil || !strings.Contains(string(claim), `"layout":2`) {
		t.Errorf("dataset.json is %s, %v: a program that knows only layout 1 would publish there", claim, err)
	}
	if !slices.Contains(parquets(t, root), latestParquets(t, root)[0]) {
		t.Error("the new version is not at the root")
	}
}

func TestAuditRefusesOtherDirectories(t *testing.T) {
	place := t.TempDir()
	mustWrite(t, filepath.Join(place, "notes.txt"), []byte("x"))
	if got, err := publish.Audit(t.Context(), dir(t, place)); !errors.Is(err, publish.ErrNoDataset) || !strings.Contains(err.Error(), place) {
		t.Errorf("%+v, %v, want ErrNoDataset", got, err)
	}
	root := t.TempDir()
	run(t, config(t, dir(t, root), stage(t, "run", 0, 2)))
	for _, key := range []string{"dataset.json", "latest.json", "manifest.json"} { // a dataset that lost one of these is still a dataset
		path := filepath.Join(root, key)
		body, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := audit(t, dir(t, root)); len(got.Findings) == 0 {
			t.Errorf("without %s: %+v", key, got)
		}
		mustWrite(t, path, body)
	}
	if _, err := os.Stat(filepath.Join(place, ".tracesmith-tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the audit wrote something: %v", err)
	}
}
