package viewer_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
)

// An exported file is for others, so it has what one wrote about episodes only on request.
func TestExportLeavesOutNotes(t *testing.T) {
	all := many(2)
	dir := runDir(t, all...)
	write(t, filepath.Join(dir, "marks.jsonl"), fmt.Sprintf(`{"episode_id":%q,"mark":"reject","note":"my <b>secret</b>","at":"2026-01-31T00:00:00Z"}`+"\n", all[1].Episode.EpisodeID))
	s := open(t, "", dir)
	export := func(x viewer.Export) string {
		var out strings.Builder
		if n, err := s.Export(t.Context(), &out, x); err != nil || n != 2 {
			t.Fatalf("%d episodes, %v", n, err)
		}
		return out.String()
	}
	var progress []string
	body := export(viewer.Export{Progress: func(done, total int) { progress = append(progress, fmt.Sprintf("%d/%d", done, total)) }})
	for _, text := range []string{"secret", `class="badge mark-reject"`} {
		if strings.Contains(body, text) {
			t.Errorf("the file contains %s", text)
		}
	}
	if got := strings.Join(progress, " "); got != "0/2 1/2" {
		t.Errorf("progress %s", got)
	}
	wantText(t, export(viewer.Export{Notes: true}), "my &lt;b&gt;secret&lt;/b&gt;", `class="badge mark-reject">reject`)
}

// A browser needs minutes for thousands of episodes, however short they are.
func TestExportIsBounded(t *testing.T) {
	var out strings.Builder
	if _, err := open(t, "", runDir(t, many(501)...)).Export(t.Context(), &out, viewer.Export{}); err == nil || !strings.Contains(err.Error(), "501 episodes with 1,503 steps are too much for one file") || out.Len() > 0 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	staged := long(10_000, 10)
	s := open(t, "", runDir(t, staged, many(2)[1]))
	if _, err := s.Export(t.Context(), &out, viewer.Export{}); err == nil || !strings.Contains(err.Error(), "at most 500 episodes and 10,000 steps") {
		t.Errorf("more than 10,000 steps: %v", err)
	}
	if n, err := s.Export(t.Context(), &out, viewer.Export{Expr: "n_steps > 100"}); err != nil || n != 1 {
		t.Errorf("one long episode: %d, %v", n, err)
	}
}
