package publish_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// stageMixed stages 24 episodes. Some are unresolved, some do not say whether they edit tests, and
// two have the same content, so that a recipe drops episodes for several reasons.
func stageMixed(t *testing.T) sinks.Store {
	staging := dir(t, t.TempDir())
	for i := range 24 {
		e := sinktest.Episode("run", i)
		e.Episode.Attempt = int32(i)
		if i%5 == 0 {
			e.Episode.Resolved, e.Episode.VerifyStatus = new(false), "verified_fail"
		}
		if i%7 == 0 {
			e.Episode.EditsTests = nil
		}
		if i == 3 || i == 9 {
			e.Episode.ContentSHA256 = new("the same")
		}
		put(t, staging, e)
	}
	return staging
}

// A recipe that is rebuilt from a manifest alone makes the same decisions: it keeps the same episodes and
// has the same funnel.
func TestManifestRebuildsTheSelection(t *testing.T) {
	staging := stageMixed(t)
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	recipe := "name: own\nextends: success-v1\npredicates: [{name: late, expr: 'attempt >= 2'}]\nselect: first\nbest: 2\ngroup: repo\ncaps: {instance_id: 1}\nseed: 7\n"
	mustWrite(t, file, []byte(recipe))
	chosen, err := selection.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t, dir(t, filepath.Join(t.TempDir(), "d")), staging)
	cfg.Selection = chosen
	rep := run(t, cfg)
	d, err := publish.Open(t.Context(), cfg.Dest)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info := d.Manifest.Selection
	for i, f := range info.Funnel[1:] {
		if f.In != info.Funnel[i].Out {
			t.Errorf("%s has %d inputs, but %s kept %d", f.Predicate, f.In, info.Funnel[i].Predicate, info.Funnel[i].Out)
		}
	}

	again := map[string]any{"name": info.Name, "seed": info.Seed, "caps": info.Caps, "dedup": info.Dedup, "group": info.Group, "select": info.Select, "best": info.Best}
	var predicates []map[string]string
	for _, f := range info.Funnel {
		if f.Expr == "" || slices.Contains([]string{"dedup:content_sha256", "select:first", "cap:instance_id"}, f.Predicate) {
			continue
		}
		predicates = append(predicates, map[string]string{"name": f.Predicate, "expr": f.Expr})
	}
	again["predicates"] = predicates
	text, err := yaml.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	rebuilt := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(rebuilt, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Dest = dir(t, filepath.Join(t.TempDir(), "e"))
	if cfg.Selection, err = selection.Load(rebuilt); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	second := run(t, cfg)
	e, err := publish.Open(t.Context(), cfg.Dest)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ids := func(d *publish.Dataset) map[string]bool {
		kept, err := d.Kept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	if diff := cmp.Diff(ids(d), ids(e)); diff != "" {
		t.Errorf("the rebuilt recipe keeps other episodes:\n%s\n%s", diff, text)
	}
	counts := func(steps []schemas.FunnelStep) (out [][2]int) {
		for _, f := range steps {
			out = append(out, [2]int{f.In, f.Out})
		}
		return out
	}
	if diff := cmp.Diff(counts(rep.Funnel), counts(second.Funnel)); diff != "" || rep.Kept != len(ids(d)) || rep.Kept < 4 || rep.Kept > 20 {
		t.Errorf("%d kept, funnel %s", rep.Kept, diff)
	}
}
