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

// parquets are the names of all Parquet files below root, wherever they lie: what
// the pattern **/*.parquet finds.
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

// listedRepos are the Parquet files of the latest version.
func listedRepos(t *testing.T, root string) []string {
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

// wantRoot fails unless the Parquet files below root are those of the latest version,
// n episodes, and the card is that of this version.
func wantRoot(t *testing.T, root string, version string, n int) {
	t.Helper()
	if diff := cmp.Diff(listedRepos(t, root), parquets(t, root)); diff != "" {
		t.Errorf("other Parquet files than those of the latest version: %s", diff)
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
	own := filepath.Join(root, "data", "mine.parquet") // of the person whose directory it is
	mustWrite(t, own, []byte("x"))
	first := run(t, config(t, dir(t, root), stage(t, "run", 0, 2))) // the pointer goes back
	if err := os.Remove(own); err != nil {
		t.Fatalf("a file that no version has was removed: %v", err)
	}
	wantRoot(t, root, first.Version, 2)
	if got := audited(t, dir(t, root)); len(got.Findings) != 0 || len(got.Versions) != 3 {
		t.Errorf("%+v", got)
	}
}

// Publishing again restores copies at the root that were damaged, lost or left behind, and keeps
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
		if got := audited(t, dir(t, root)); !slices.ContainsFunc(got.Findings, func(f publish.Finding) bool {
			return f.Object == rel && f.Problem == publish.Missing && strings.Contains(f.Detail, "publish again")
		}) {
			t.Errorf("%s is gone: %+v", rel, got.Findings)
		}
		if again := run(t, config(t, dir(t, root), staging)); !again.Already || again.Version != rep.Version {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff(want, tree(t, root)); diff != "" {
			t.Errorf("%s is gone: %s", rel, diff)
		}
	}
	old = slices.DeleteFunc(old, func(rel string) bool { return want[rel] != "" })
	left := old[0] // as a publish leaves it that is killed before it removes it
	mustWrite(t, filepath.Join(root, left), []byte("x"))
	if got := audited(t, dir(t, root)); len(got.Findings) != 1 || got.Findings[0].Object != left || !strings.Contains(got.Findings[0].Detail, "earlier version") {
		t.Errorf("a file of the version before: %+v", got.Findings)
	}
	run(t, config(t, dir(t, root), staging))
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Errorf("a file of the version before stayed: %s", diff)
	}
}

// If a publish is killed while it replaces one version by another, the next publish of either
// version completes it.
func TestKilledBetweenTwoVersions(t *testing.T) {
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
		dest := &dying{Store: dir(t, root)}
		dest.left.Store(int32(writes))
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
		t.Errorf("done after %d writes: little was interrupted", len(roots))
	}
	for writes, root := range roots { // together: each waits for the lease of its dead
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

// A dataset written by commit a703807, whose version is at the root, can be read, verified and
// published into; that version stays unchanged.
func TestDatasetsOfTheEarlierLayoutStayReadable(t *testing.T) {
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
	if got := audited(t, dir(t, root)); len(got.Findings) != 0 || !slices.Equal(got.Versions, []string{old}) {
		t.Errorf("%+v", got)
	}
	before := tree(t, filepath.Join(root, old))
	cfg := config(t, dir(t, root), dir(t, filepath.Join(v1, "run")))
	cfg.Name, cfg.Producer = d.Manifest.Dataset, d.Manifest.Producer.Version
	now := run(t, cfg)
	if now.Version == old || now.Copied == 0 {
		t.Errorf("version %s after %s, %d files taken over", now.Version, old, now.Copied)
	}
	if diff := cmp.Diff(before, tree(t, filepath.Join(root, old))); diff != "" {
		t.Errorf("publishing changed a version of the layout before: %s", diff)
	}
	if got := audited(t, dir(t, root)); len(got.Findings) != 0 || len(got.Versions) != 2 {
		t.Errorf("%+v", got)
	}
	claim, err := os.ReadFile(filepath.Join(root, "dataset.json"))
	if err != nil || !strings.Contains(string(claim), `"layout":2`) {
		t.Errorf("dataset.json is %s, %v: a program of the layout before would publish there", claim, err)
	}
	if !slices.Contains(parquets(t, root), listedRepos(t, root)[0]) {
		t.Error("the new version is not at the root")
	}
}

func TestAPlaceThatIsNoDatasetIsNotListed(t *testing.T) {
	place := t.TempDir()
	mustWrite(t, filepath.Join(place, "notes.txt"), []byte("x"))
	if got, err := publish.Audit(t.Context(), dir(t, place)); !errors.Is(err, publish.ErrNoDataset) || !strings.Contains(err.Error(), place) {
		t.Errorf("%+v, %v, want ErrNoDataset", got, err)
	}
	root := t.TempDir()
	run(t, config(t, dir(t, root), stage(t, "run", 0, 2)))
	for _, key := range []string{"dataset.json", "latest.json", "manifest.json"} { // each may be what is lost
		path := filepath.Join(root, key)
		body, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := audited(t, dir(t, root)); len(got.Findings) == 0 {
			t.Errorf("without %s: %+v", key, got)
		}
		mustWrite(t, path, body)
	}
	if _, err := os.Stat(filepath.Join(place, ".tracesmith-tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking wrote something: %v", err)
	}
}
