package wire

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// Audit checks every object of a dataset or of a run. place is a directory or an S3 location.
func Audit(ctx context.Context, place string, cfg configs.S3) (publish.AuditReport, error) {
	var zero publish.AuditReport
	if root, version := publish.VersionOf(place); version != "" {
		return zero, fmt.Errorf("%s is one version of a dataset: name %s, all of whose versions are checked", place, root)
	}
	if err := checkPlace(place); err != nil {
		return zero, err
	}
	if !isRun(place) {
		store, err := OpenStore(ctx, place, cfg)
		if err != nil {
			return zero, err
		}
		return publish.Audit(ctx, store)
	}
	store, err := OpenStaging(ctx, place, cfg)
	if err != nil {
		return zero, err
	}
	dir := strings.TrimPrefix(place, "file://")
	info, err := rundir.ReadInfo(dir)
	if err != nil {
		return zero, err
	}
	report, err := lastReport(dir)
	if err != nil {
		return zero, err
	}
	var staged []string
	for _, e := range report.Episodes {
		if e.Bytes > 0 {
			staged = append(staged, e.ID)
		}
	}
	return publish.AuditRun(ctx, store, info.RunID, staged)
}
