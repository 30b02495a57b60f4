package publish_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

func audit(t *testing.T, s sinks.Store) publish.AuditReport {
	t.Helper()
	got, err := publish.Audit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// problems returns the findings as "problem object", with A, B, ... instead of the versions' names.
func problems(a publish.AuditReport) []string {
	out := []string{}
	for _, f := range a.Findings {
		object := f.Object
		for i, v := range a.Versions {
			object = strings.ReplaceAll(object, v, string(rune('A'+i)))
		}
		out = append(out, f.Problem+" "+object)
	}
	return out
}

func TestAuditFindsDamageInEveryFile(t *testing.T) {
	root := t.TempDir()
	rep := run(t, config(t, dir(t, root), stage(t, "run", 0, 3)))
	if got := audit(t, dir(t, root)); len(got.Findings) != 0 || got.Objects < rep.Files+3 || !slices.Equal(got.Versions, []string{rep.Version}) {
		t.Fatalf("an untouched dataset: %+v", got)
	}
	alone := t.TempDir() // a copy of the root without the versions, as a user may upload it
	for rel := range tree(t, root) {
		if rel[0] != '.' {
			copyFile(t, filepath.Join(root, rel), filepath.Join(alone, rel))
		}
	}
	if got := audit(t, dir(t, alone)); len(got.Findings) != 0 || got.Objects != rep.Files+1 {
		t.Errorf("a version by itself: %+v", got)
	}
	wantDataset(t, dir(t, alone), golden("run", 3)...)
	for rel := range tree(t, root) {
		if strings.HasPrefix(rel, ".tracesmith-") {
			continue
		}
		path := filepath.Join(root, rel)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(good)
		bad[len(bad)/2] ^= 1
		for how, change := range map[string]func() error{
			"flipped": func() error { return os.WriteFile(path, bad, 0o600) },
			"cut":     func() error { return os.WriteFile(path, good[:len(good)/2], 0o600) },
			"grown":   func() error { return os.WriteFile(path, append(slices.Clone(good), ' '), 0o600) },
			"missing": func() error { return os.Remove(path) },
		} {
			if rel == "lease.json" && (how == "flipped" || how == "missing") {
				continue // the lease says nothing about the data
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			got := audit(t, dir(t, root))
			if !slices.ContainsFunc(got.Findings, func(f publish.Finding) bool { return f.Object == filepath.ToSlash(rel) }) {
				t.Errorf("%s %s: %+v", how, rel, got.Findings)
			}
			mustWrite(t, path, good)
		}
	}
	mustWrite(t, filepath.Join(root, ".versions", rep.Version, "data", "mine.parquet"), nil)
	mustWrite(t, filepath.Join(root, "notes.txt"), nil)
	want := []string{"surplus .versions/A/data/mine.parquet", "surplus notes.txt"}
	if diff := cmp.Diff(want, problems(audit(t, dir(t, root)))); diff != "" {
		t.Error(diff)
	}
}

// A version reports its damaged files. The latest version, of which the root has a copy, is still read, with a warning.
func TestOpenReportsDamagedFiles(t *testing.T) {
	root := t.TempDir()
	rep := run(t, config(t, dir(t, root), stage(t, "run", 0, 3)))
	version := filepath.Join(root, ".versions", rep.Version)
	for rel := range tree(t, version) {
		path := filepath.Join(version, rel)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(how string) {
			var corrupt *formats.CorruptError
			latest, err := publish.Open(t.Context(), dir(t, root))
			if err == nil {
				err = latest.Verify(t.Context())
			}
			switch {
			case how == "missing" && rel == "manifest.json":
				if err != nil {
					t.Errorf("%s %s: %v", how, rel, err)
				}
				return
			case rel != "manifest.json":
				if err != nil || len(latest.Warnings()) != 1 || !strings.Contains(latest.Warnings()[0], filepath.ToSlash(rel)) {
					t.Errorf("%s %s: %v with the copy at the root, warnings %q", how, rel, err, latest.Warnings())
				}
				d, oerr := publish.OpenVersion(t.Context(), dir(t, root), rep.Version)
				if oerr != nil {
					t.Fatal(oerr)
				}
				err = d.Verify(t.Context())
			}
			if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), filepath.ToSlash(rel)) {
				t.Errorf("%s %s: %v, want a CorruptError naming it", how, rel, err)
			}
		}
		bad := bytes.Clone(good)
		bad[len(bad)/2] ^= 1
		mustWrite(t, path, bad)
		check("flipped")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check("missing")
		mustWrite(t, path, good)
	}
	wantDataset(t, dir(t, root), golden("run", 3)...)
	if _, err := publish.Open(t.Context(), dir(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), "no dataset in") {
		t.Errorf("empty directory: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	body, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, to, body)
}

// The audit notices any changed byte of latest.json, dataset.json and the manifests of both versions.
func TestAuditFindsEveryChangedByteOfDocuments(t *testing.T) {
	root := t.TempDir()
	old := run(t, config(t, dir(t, root), stage(t, "run", 0, 2)))
	now := run(t, config(t, dir(t, root), stage(t, "run", 0, 3)))
	oldManifest, newManifest := ".versions/"+old.Version+"/manifest.json", ".versions/"+now.Version+"/manifest.json"
	for rel, stride := range map[string]int{"latest.json": 3, "dataset.json": 1, oldManifest: 397, newManifest: 397, "manifest.json": 397} {
		path := filepath.Join(root, rel)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(good); i += stride {
			bad := slices.Clone(good)
			bad[i] ^= 1
			mustWrite(t, path, bad)
			found := func(a publish.AuditReport, object string) bool {
				return slices.ContainsFunc(a.Findings, func(f publish.Finding) bool { return f.Object == object })
			}
			if got := audit(t, dir(t, root)); !found(got, filepath.ToSlash(rel)) {
				t.Errorf("byte %d of %s: %q: %+v", i, rel, bad[max(0, i-20):min(len(bad), i+20)], got.Findings)
			}
			if rel == oldManifest {
				key := bytes.Index(good, []byte("self_sha256")) // a field with an unknown name may come from a later version of tracesmith
				if d, err := publish.OpenVersion(t.Context(), dir(t, root), old.Version); err == nil && (i < key || i > key+len("self_sha256")) {
					t.Errorf("byte %d: a version whose manifest was changed can be opened", i)
					_ = d.Close()
				}
			}
		}
		mustWrite(t, path, good)
	}
	if got := audit(t, dir(t, root)); len(got.Findings) != 0 {
		t.Errorf("after restoring all files: %+v", got.Findings)
	}
	for _, manifest := range []string{oldManifest, newManifest} {
		if err := os.Remove(filepath.Join(root, manifest)); err != nil {
			t.Fatal(err)
		}
		lost := publish.Finding{Object: manifest, Problem: publish.Missing}
		var named []publish.Finding
		for _, f := range audit(t, dir(t, root)).Findings {
			if f.Detail = ""; f.Object == lost.Object {
				named = append(named, f)
			}
		}
		if diff := cmp.Diff([]publish.Finding{lost}, named); diff != "" {
			t.Errorf("with a missing manifest: %s", diff)
		}
	}
}

// The test changes the server's files on disk, in the older of two versions.
func TestS3AuditOfAServerWithBadDisks(t *testing.T) {
	srv := sinktest.Serve(t)
	dest := bucket(t, srv.URL)
	first := run(t, config(t, dest, stage(t, "run", 0, 3)))
	before := objects(t, dest)
	second := run(t, config(t, dest, stage(t, "run", 0, 5)))
	after := objects(t, dest)
	for key, size := range before {
		if strings.HasPrefix(key, ".versions/") && after[key] != size {
			t.Errorf("publishing again changed %s", key)
		}
	}
	if got := audit(t, dest); len(got.Findings) != 0 || len(got.Versions) != 2 {
		t.Fatalf("untouched: %+v", got)
	}
	var files []string
	for key := range before {
		if strings.HasPrefix(key, ".versions/"+first.Version+"/data/") {
			files = append(files, key)
		}
	}
	slices.Sort(files)
	dataFile := func(key string) string {
		path, err := srv.Data("team/traces/" + key)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	body, err := os.ReadFile(dataFile(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)/2] ^= 1
	if err := os.WriteFile(dataFile(files[0]), body, 0o600); err != nil { // in place, so that the server keeps its metadata
		t.Fatal(err)
	}
	if err := srv.RemoveObject("team/traces/" + files[1]); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dataFile(files[2]), 10); err != nil {
		t.Fatal(err)
	}
	if err := dest.Create(t.Context(), ".versions/"+first.Version+"/data/own.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	truncated := "damaged "
	if srv.Name == "minio" { // minio treats an object with truncated metadata as missing
		truncated = "missing "
	}
	want := []string{"damaged " + files[0], "missing " + files[1], truncated + files[2], "surplus .versions/" + first.Version + "/data/own.txt"}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
	var got []string
	for _, f := range audit(t, dest).Findings {
		got = append(got, f.Problem+" "+f.Object)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d, err := publish.Open(t.Context(), dest); err != nil || d.Manifest.Version != second.Version {
		t.Errorf("the latest version is not %s: %v", second.Version, err)
	}
}

// An object that the server refuses to return counts as damaged; a server that refuses everything
// is an error.
func TestS3AuditOfRefusedObjects(t *testing.T) {
	srv := sinktest.Serve(t)
	run(t, config(t, bucket(t, srv.URL), stage(t, "run", 0, 2)))
	faults := sinktest.NewFaults(t, srv.URL)
	dest := bucket(t, faults.URL)
	for n := 2; n <= 6; n++ { // the documents of the dataset, and one data object
		faults.Plan("GET", sinktest.Refused, n, n)
		if got := audit(t, dest); len(got.Findings) != 1 || got.Findings[0].Problem != publish.Damaged || !strings.Contains(got.Findings[0].Detail, "cannot be read") {
			t.Errorf("object %d is refused: %+v", n, got.Findings)
		}
	}
	faults.Plan("GET", sinktest.Refused, 1, 1000)
	faults.Plan("LIST", sinktest.Refused, 2, 1000)
	if got, err := publish.Audit(t.Context(), dest); err == nil {
		t.Errorf("a server that refuses everything: %+v", got)
	}
}

func TestS3AuditOfARun(t *testing.T) {
	s := stage(t, "run", 0, 3)
	ids := []string{}
	for _, e := range golden("run", 4) {
		ids = append(ids, e.Episode.EpisodeID)
	}
	put(t, s, sinktest.Episode("other", 1))
	moved := sinktest.Episode("run", 9)
	body, err := sinks.EncodeStaged(moved)
	if err == nil {
		err = s.Create(t.Context(), sinks.StagedKey("run", "x"), body)
	}
	if err == nil {
		err = s.Create(t.Context(), sinks.StagedKey("run", "torn"), body[:len(body)/2])
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := publish.AuditRun(t.Context(), s, "run", ids)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, f := range got.Findings {
		count[f.Problem]++
	}
	if diff := cmp.Diff(map[string]int{publish.Damaged: 2, publish.Missing: 1, publish.Surplus: 1}, count); diff != "" {
		t.Errorf("%s\n%+v", diff, got.Findings)
	}
}
