package mutate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// library returns files of the Python standard library: some of them, or all except tests if
// TRACESMITH_TEST_STDLIB=1.
func library(t *testing.T) (root string, files []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	root = strings.TrimSpace(string(out))
	if os.Getenv("TRACESMITH_TEST_STDLIB") == "" {
		return root, []string{"textwrap.py", "queue.py", "json/decoder.py", "asyncio/locks.py", "fractions.py"}
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{"test", "tests", "dist-packages", "site-packages", "lib2to3", "idlelib"}, d.Name()) {
			return filepath.SkipDir
		}
		if name, _ := filepath.Rel(root, path); err == nil && strings.HasSuffix(name, ".py") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, files
}

// The patches of a few sites of each file and operator apply with git, and change no line outside
// the site.
func TestSitesOfRealCodeApply(t *testing.T) {
	root, files := library(t)
	sb := envtest.Sandbox(t, "local", env.SandboxSpec{Label: "mutate-test", Workdir: workdir})
	m, err := Start(t.Context(), Config{Sandbox: sb, Workdir: workdir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	b := &bench{m, t, sb, root}
	count, applied := map[string]int{}, 0
	var listing, applying time.Duration
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.WriteFile(t.Context(), workdir+"/"+f, raw, 0); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got, err := b.Enumerate(t.Context(), []File{{Path: f}})
		if err != nil || len(got.Skipped) > 0 {
			t.Errorf("%v, skipped %v", err, got.Skipped)
			continue
		}
		listing += time.Since(began)
		tried := map[string]int{}
		for _, s := range Sample(got.Sites, len(got.Sites), 1) {
			count[s.Operator]++
			if tried[s.Operator]++; tried[s.Operator] > 2 {
				continue
			}
			began := time.Now()
			mutation, err := b.Apply(t.Context(), []Site{s})
			applying += time.Since(began)
			applied++
			if err != nil {
				t.Errorf("%s:%d %s %s: %v", f, s.Line, s.Operator, s.Note, err)
				continue
			}
			if why := otherChanges(raw, b.patched(f, mutation.Patch), s); why != "" {
				t.Errorf("%s:%d %s %s: %s\n%s", f, s.Line, s.Operator, s.Note, why, mutation.Patch)
			}
		}
	}
	total := 0
	for _, op := range slices.Sorted(maps.Keys(count)) {
		total += count[op]
	}
	t.Logf("%d files, %d sites: %v", len(files), total, count)
	t.Logf("per 1,000 sites: listed in %.2f s, applied in %.1f s", listing.Seconds()/float64(max(total, 1))*1000, applying.Seconds()/float64(max(applied, 1))*1000)
	if len(count) < 25 {
		t.Errorf("only %d operators found a site", len(count))
	}
}

// otherChanges describes what differs outside the lines of a site, "" if nothing does.
func otherChanges(before, after []byte, s Site) string {
	a, b := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	tail := len(a) - s.EndLine
	if len(b) < s.Line-1+tail {
		return fmt.Sprintf("only %d lines remain", len(b))
	}
	same := func(x, y [][]byte) bool {
		return slices.EqualFunc(x, y, bytes.Equal)
	}
	if !same(a[:s.Line-1], b[:s.Line-1]) || !same(a[s.EndLine:], b[len(b)-tail:]) {
		return "other lines differ"
	}
	return ""
}
