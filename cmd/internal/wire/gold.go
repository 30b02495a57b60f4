package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// GoldPatches returns the gold patches of tasks by their ids. Neither runs nor datasets contain
// them, so that it reads the source of the run at place or, for a dataset, the source that cfg names.
func GoldPatches(ctx context.Context, place string, cfg configs.Tasks) (map[string]string, error) {
	if isRun(place) {
		dir := strings.TrimPrefix(place, "file://")
		info, err := rundir.ReadInfo(dir)
		if err != nil {
			return nil, err
		}
		var recorded struct{ Tasks *configs.Tasks }
		if err := json.Unmarshal([]byte(cmp.Or(string(info.Config), "{}")), &recorded); err != nil {
			return nil, fmt.Errorf("reading the configuration in %s: %w", filepath.Join(dir, "run.json"), err)
		}
		if recorded.Tasks != nil {
			cfg = *recorded.Tasks
		}
	}
	source, err := Source(cfg)
	if err != nil {
		return nil, err
	}
	tasks, err := source.Tasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the tasks of %s: %w", place, err)
	}
	patches := map[string]string{}
	for _, t := range tasks {
		patches[t.ID] = t.GoldPatch
	}
	return patches, nil
}
