package publish_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

func dir(t *testing.T, path string) sinks.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), path, stores.S3Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stage puts the n golden episodes of a run from number first on into a new store.
func stage(t *testing.T, run string, first, n int) sinks.Store {
	t.Helper()
	s := dir(t, t.TempDir())
	for i := range n {
		put(t, s, sinktest.Episode(run, first+i))
	}
	return s
}

func put(t *testing.T, s sinks.Store, e sinks.Staged) {
	t.Helper()
	body, err := sinks.EncodeStaged(e)
	if err == nil {
		err = s.Create(t.Context(), sinks.StagedKey(e.Episode.RunID, e.Episode.EpisodeID), body)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func config(t *testing.T, dest sinks.Store, staging ...sinks.Store) publish.Config {
	return publish.Config{Staging: staging, Dest: dest, Name: "traces", Producer: "test", Scratch: t.TempDir(), MaxShard: 300 << 10}
}

func run(t *testing.T, cfg publish.Config) publish.Report {
	t.Helper()
	r, err := publish.Publish(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree returns the hashes of all files below root.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		out[rel] = schemas.HashBytes(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wantDataset opens the published dataset, verifies it and compares it with the staged
// episodes.
func wantDataset(t *testing.T, dest sinks.Store, staged ...sinks.Staged) *publish.Dataset {
	t.Helper()
	d, err := publish.Open(t.Context(), dest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(staged, func(a, b sinks.Staged) int { return slices.Compare(sortKey(a.Episode), sortKey(b.Episode)) })
	n := 0
	for got, err := range d.Trajectories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want := staged[n].Trajectory()
		want.Episode.SatisfiedCriteria = []string{}
		for _, tools := range append(slices.Collect(maps.Values(want.ToolSets)), want.Tools) {
			for i := range tools {
				tools[i].Parameters, _ = schemas.CanonicalJSON(tools[i].Parameters)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("episode %d: %s", n, diff)
		}
		alone, err := d.Trajectory(t.Context(), got.Episode)
		if diff := cmp.Diff(got, alone); diff != "" || err != nil {
			t.Fatalf("episode %d, read alone: %v %s", n, err, diff)
		}
		n++
	}
	if n != len(staged) || d.Manifest.Totals.Episodes != n {
		t.Errorf("%d episodes read, manifest says %d, %d staged", n, d.Manifest.Totals.Episodes, len(staged))
	}
	return d
}

func sortKey(e schemas.EpisodeRow) []string {
	return []string{e.Split, e.Repo, e.InstanceID, e.EpisodeID}
}

func golden(run string, n int) []sinks.Staged {
	var out []sinks.Staged
	for i := range n {
		out = append(out, sinktest.Episode(run, i))
	}
	return out
}

func TestPublishedDatasetIsWhatWasStaged(t *testing.T) {
	failed := sinktest.Episode("run", 20)
	failed.Episode.Split, failed.Episode.Repo, failed.Episode.SplitGroup = "test", "other/repo", new("other/repo")
	failed.Episode.Resolved, failed.Episode.CostUSD = new(false), new(0.25)
	for i := range failed.Steps {
		failed.Steps[i].Split, failed.Steps[i].Repo, failed.Steps[i].Resolved = "test", "other/repo", new(false)
	}
	staging := stage(t, "run", 0, 9)
	put(t, staging, failed)
	root := filepath.Join(t.TempDir(), "dataset")
	rep := run(t, config(t, dir(t, root), staging))
	d := wantDataset(t, dir(t, root), append(golden("run", 9), failed)...)

	if rep.AlreadyPublished || rep.Episodes != 10 || rep.Steps != 100 || rep.Kept != 9 || rep.Uploaded != rep.Files {
		t.Errorf("report = %+v", rep)
	}
	kept, err := d.Kept(t.Context())
	if err != nil || len(kept) != 9 || kept[failed.Episode.EpisodeID] {
		t.Errorf("kept %v, %v", kept, err)
	}
	in := 10
	for _, f := range d.Manifest.Selection.Funnel {
		if f.In != in {
			t.Errorf("funnel: %s has %d inputs, but the previous step kept %d", f.Predicate, f.In, in)
		}
		in = f.Out
	}
	if in != 9 || d.Manifest.Totals.CostUSD == nil || *d.Manifest.Totals.CostUSD != 0.25 {
		t.Errorf("funnel ends with %d, totals %+v", in, d.Manifest.Totals)
	}
	counts := map[string]int64{}
	for _, f := range d.Manifest.Files {
		counts[f.Table+"/"+f.Split] += f.Rows
		if f.Table == "steps" && (f.Uncompressed > 2<<20 || f.MinKey[0] != f.Split) {
			t.Errorf("shard %+v", f)
		}
	}
	want := map[string]int64{"/": 0, "episodes/train": 9, "episodes/test": 1, "steps/train": 90, "steps/test": 10, "blobs/": 1, "tool_sets/": 1, "selection/": 10}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	checkCard(t, root, d.Manifest)
}

// checkCard checks that the card's front matter, which the Hub reads, lists the files of the manifest.
func checkCard(t *testing.T, root string, m schemas.Manifest) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	front, body, _ := strings.Cut(strings.TrimPrefix(string(raw), "---\n"), "\n---\n")
	var card struct {
		License string
		Configs []struct {
			ConfigName string `yaml:"config_name"`
			DataFiles  []struct {
				Split string
				Path  []string
			} `yaml:"data_files"`
		}
	}
	if err := yaml.Unmarshal([]byte(front), &card); err != nil {
		t.Fatalf("front matter: %v\n%s", err, front)
	}
	listed := map[string]bool{}
	for _, c := range card.Configs {
		for _, f := range c.DataFiles {
			for _, p := range f.Path {
				listed[c.ConfigName+" "+f.Split+" "+p] = true
			}
		}
	}
	want := map[string]bool{}
	for _, f := range m.Files {
		if f.Table == "episodes" || f.Table == "steps" {
			want[f.Table+" "+f.Split+" "+f.Path] = true
		}
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
	if card.License != "mit" || !strings.Contains(body, "| verified_success |") || strings.Contains(body, "<no value>") || strings.Contains(body, "%!") || !strings.Contains(body, "| 0.25 USD, of the 1 episodes that report one |") {
		t.Errorf("card:\n%s", raw)
	}
}

func TestSameStagingGivesIdenticalTrees(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	whole := stage(t, "run", 0, 8)
	first := run(t, config(t, dir(t, a), whole))
	second := run(t, config(t, dir(t, b), stage(t, "run", 4, 4), stage(t, "run", 0, 5))) // one episode is in both run directories
	if diff := cmp.Diff(tree(t, a), tree(t, b)); diff != "" {
		t.Error(diff)
	}
	if first.Version != second.Version {
		t.Error("versions differ")
	}
	before := tree(t, a)
	again := run(t, config(t, dir(t, a), whole))
	if !again.AlreadyPublished || again.Uploaded != 0 || again.Version != first.Version || again.Kept != first.Kept {
		t.Errorf("repeat = %+v", again)
	}
	if diff := cmp.Diff(before, tree(t, a)); diff != "" {
		t.Error(diff)
	}
}

func TestMoreDataKeepsMostShards(t *testing.T) {
	root := t.TempDir()
	staging := dir(t, t.TempDir())
	var all []sinks.Staged
	for i := range 31 {
		if i%8 != 1 { // these episodes are so large that each of them ends its file
			all = append(all, sinktest.Episode("run", i))
		}
	}
	last := len(all) - 1
	for _, e := range all[:last] {
		put(t, staging, e)
	}
	first := run(t, config(t, dir(t, root), staging))
	shas := func(v string) map[string]bool {
		out := map[string]bool{}
		for p := range tree(t, filepath.Join(root, ".versions", v, "data", "steps")) {
			out[p] = true
		}
		return out
	}
	put(t, staging, all[last]) // of the first repository
	second := run(t, config(t, dir(t, root), staging))
	if first.Version == second.Version {
		t.Fatal("different inputs have the same version")
	}
	before, after := shas(first.Version), shas(second.Version)
	same := 0
	for p := range before {
		if after[p] {
			same++
		}
	}
	if len(before) < 4 || same < len(before)-2 || second.Copied < same {
		t.Errorf("%d of %d shards are the same, %d files were copied", same, len(before), second.Copied)
	}
	if d := wantDataset(t, dir(t, root), all...); d.Manifest.Version != second.Version {
		t.Error("the second version is not the latest")
	}
	old, err := publish.OpenVersion(t.Context(), dir(t, root), first.Version)
	if err == nil {
		err = old.Verify(t.Context())
	}
	if err != nil || old.Manifest.Version != first.Version {
		t.Errorf("the first version cannot be read: %v", err)
	}
}

func TestInvalidInputIsRefused(t *testing.T) {
	good := stage(t, "run", 0, 2)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	other := config(t, dir(t, taken), good)
	other.Name = "other"
	run(t, other)
	claimed := t.TempDir()
	if err := os.WriteFile(filepath.Join(claimed, "dataset.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	conflict := sinktest.Episode("run", 0)
	conflict.Episode.Reward = new(9.0)
	conflicting := dir(t, t.TempDir())
	put(t, conflicting, conflict)
	leak := sinktest.Episode("run", 30)
	leak.Episode.Split = "test"
	for i := range leak.Steps {
		leak.Steps[i].Split = "test"
	}
	leaking := dir(t, t.TempDir())
	put(t, leaking, leak)
	damaged := dir(t, t.TempDir())
	if err := damaged.Create(t.Context(), "staging/run/x.json.zst", []byte("torn")); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "new")
	for name, c := range map[string]struct {
		cfg  publish.Config
		is   error
		want string
	}{
		"empty":      {config(t, dir(t, fresh), dir(t, t.TempDir())), publish.ErrEmpty, "tracesmith run"},
		"no run":     {config(t, dir(t, fresh)), nil, "name at least one"},
		"foreign":    {config(t, dir(t, foreign), good), publish.ErrOccupied, "thesis.txt"},
		"other":      {config(t, dir(t, taken), good), publish.ErrOccupied, `dataset "other"`},
		"not ours":   {config(t, dir(t, claimed), good), publish.ErrOccupied, "dataset.json"},
		"conflict":   {config(t, dir(t, fresh), good, conflicting), nil, "staged twice"},
		"leak":       {config(t, dir(t, fresh), good, leaking), nil, "split group"},
		"damaged":    {config(t, dir(t, fresh), good, damaged), nil, "staging/run/x.json.zst"},
		"bad name":   {publish.Config{Staging: []sinks.Store{good}, Dest: dir(t, fresh), Name: "a/b", Producer: "x"}, nil, "without slashes"},
		"no scratch": {publish.Config{Staging: []sinks.Store{good}, Dest: dir(t, fresh), Name: "a", Producer: "x", Scratch: "/nonexistent/x"}, nil, "/nonexistent/x"},
	} {
		before := maps.Clone(tree(t, foreign))
		maps.Copy(before, tree(t, taken))
		_, err := publish.Publish(t.Context(), c.cfg)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		after := maps.Clone(tree(t, foreign))
		maps.Copy(after, tree(t, taken))
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: existing files changed: %s", name, diff)
		}
	}
}

func mustWrite(t *testing.T, path string, body []byte) {
	t.Helper()
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}
