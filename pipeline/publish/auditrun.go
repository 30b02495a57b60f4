package publish

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/sinks"
)

// AuditRun reads every staged object of a run, and checks that it is complete and has the
// right key. want are the IDs of the episodes that the run reported as staged.
func AuditRun(ctx context.Context, store sinks.Store, runID string, want []string) (AuditReport, error) {
	a, err := newAudit(ctx, store, "run", "staging/")
	if err != nil {
		return AuditReport{}, err
	}
	for _, id := range want {
		key := sinks.StagedKey(runID, id)
		if _, ok := a.sizes[key]; !ok {
			a.addFinding(key, Missing, "it does not exist, although the run reported the episode as staged")
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for key := range a.sizes {
		g.Go(func() error { return a.checkStagedObject(gctx, key, runID) })
	}
	if err := g.Wait(); err != nil {
		return AuditReport{}, err
	}
	return a.report(), nil
}

// checkStagedObject checks one staged object, which must belong to the run.
func (a *audit) checkStagedObject(ctx context.Context, key, runID string) error {
	var raw []byte
	ok, err := a.read(ctx, key, func(r io.Reader) (err error) {
		raw, err = io.ReadAll(r)
		return err
	})
	if err != nil || !ok {
		return err
	}
	s, err := sinks.DecodeStaged(raw)
	if err == nil {
		err = checkStaged(s)
	}
	switch {
	case err != nil:
		a.addFinding(key, Damaged, err.Error())
	case key != sinks.StagedKey(s.Episode.RunID, s.Episode.EpisodeID):
		a.addFinding(key, Damaged, "it contains episode "+s.Episode.EpisodeID+" of run "+s.Episode.RunID)
	case s.Episode.RunID != runID:
		a.addFinding(key, Surplus, "it belongs to another run: "+s.Episode.RunID)
	}
	return nil
}
