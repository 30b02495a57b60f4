package publish_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Long texts are sharded by repository, so a new repository changes only the file that it belongs to.
func TestNewRepositoryKeepsOtherBlobFiles(t *testing.T) {
	root, staging := t.TempDir(), dir(t, t.TempDir())
	from := func(n int) sinks.Staged {
		e := sinktest.Episode("run", n)
		e.Episode.Repo, e.Episode.Split = fmt.Sprintf("acme/tool-%02d", n), "train"
		e.Episode.SplitGroup = &e.Episode.Repo
		for i := range e.Steps {
			e.Steps[i].Repo, e.Steps[i].Split = e.Episode.Repo, "train"
		}
		text := fmt.Sprint(n, strings.Repeat(" long", 8<<10))
		e.Blobs = []sinks.Blob{{SHA256: schemas.HashBytes([]byte(text)), Bytes: int64(len(text)), MediaType: "text/plain", Content: text}}
		return e
	}
	for n := range 18 { // 17 and 18 repositories give the same buckets
		if n != 3 { // the other repositories of its bucket fill one file
			put(t, staging, from(n))
		}
	}
	files := func(r publish.Report) map[string]string {
		return tree(t, filepath.Join(root, "data", "blobs"))
	}
	before := files(run(t, config(t, dir(t, root), staging)))
	put(t, staging, from(3))
	after := files(run(t, config(t, dir(t, root), staging)))
	for name := range after {
		delete(before, name)
	}
	if len(after) < 3 || len(before) > 1 {
		t.Errorf("one new repository replaced %d of %d blob files", len(before), len(after))
	}
}
