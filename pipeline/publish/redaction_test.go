package publish_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/publish"
)

func TestRedactionsAreReported(t *testing.T) {
	staging, root := dir(t, t.TempDir()), t.TempDir()
	all := golden("run", 5)
	for i, counts := range []*string{new(`{"known":2,"github_token":1}`), new(`{"known":3}`), new(`{}`), nil} {
		all[i].Episode.RedactionsJSON = counts
	}
	leaky := &all[4]
	leaky.Steps = slices.Clone(leaky.Steps)
	leaky.Steps[0].Message = "use ghp_" + strings.Repeat("a1B2", 9)
	for _, s := range all {
		put(t, staging, s)
	}
	run(t, config(t, dir(t, root), staging))
	raw, err := os.ReadFile(filepath.Join(root, "reports", "redaction.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got publish.Redaction
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := publish.Redaction{
		Schema: "tracesmith.redaction/1", Episodes: 4, Redacted: 2, Unknown: 1, Placeholders: 6, HeldBack: 1,
		Types: map[string]publish.RedactedType{"known": {Placeholders: 5, Episodes: 2}, "github_token": {Placeholders: 1, Episodes: 1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
