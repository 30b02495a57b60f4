package wire

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// Audit checks every object of a dataset or of a run.
func Audit(ctx context.Context, place string, cfg configs.S3) (publish.AuditReport, error) {
	var none publish.AuditReport
	if root, version := publish.VersionOf(place); version != "" {
		return none, fmt.Errorf("%s is one version of a dataset: name %s, all of whose versions are checked", place, root)
	}
	if !strings.Contains(place, "://") {
		if _, err := os.Stat(place); err != nil {
			return none, fmt.Errorf("%s does not exist: name a run directory (run --run-dir) or a dataset (publish --to)", place)
		}
	}
	if !isRun(place) {
		store, err := OpenStore(ctx, place, cfg)
		if err != nil {
			return none, err
		}
		return publish.Audit(ctx, store)
	}
	store, err := OpenStaging(ctx, place, cfg)
	if err != nil {
		return none, err
	}
	dir := strings.TrimPrefix(place, "file://")
	info, err := rundir.ReadInfo(dir)
	if err != nil {
		return none, err
	}
	last, err := lastReport(dir)
	if err != nil {
		return none, err
	}
	var want []string
	for _, e := range last.Episodes {
		if e.Bytes > 0 {
			want = append(want, e.ID)
		}
	}
	return publish.AuditRun(ctx, store, info.RunID, want)
}
