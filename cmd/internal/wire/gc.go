package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/workspace/setup"
	"github.com/tracesmith/tracesmith/sinks"
)

// Leftovers lists what dead processes left on this host and in the daemons of its
// sandboxes, and cached set-up results beyond the cache's limits: each once, oldest first.
// absent names daemons and clusters that do not answer; if sandbox.kind chooses one of
// them, that is an error. The error names the places that could not be checked; the list
// holds the leftovers of the other places.
func Leftovers(ctx context.Context, cfg configs.Config) (all []env.Leftover, absent []string, _ error) {
	errs := []error{}
	seen := map[string]bool{}
	collect := func(where string, k env.LeftoverLister) {
		list, err := k.Leftovers(ctx)
		switch {
		case errors.Is(err, env.ErrUnreachable) && where != cfg.Sandbox.Kind:
			absent = append(absent, fmt.Sprintf("%s: %v", where, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
		for _, l := range list {
			if id := l.Kind + " " + l.Name; !seen[id] {
				seen[id] = true
				all = append(all, l)
			}
		}
	}
	for _, kind := range env.Drivers.Kinds() {
		d, err := driver(cfg, kind)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		collect(kind, d)
	}
	collect("scratch directories", drivers.Scratch{})
	collect("set-up cache", setup.Cache{Dir: setup.DefaultCache(), Limit: int64(cfg.Sandbox.SetupCache)})
	slices.SortStableFunc(all, func(a, b env.Leftover) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	return all, absent, errors.Join(errs...)
}

// UnfinishedUploads lists parts of unfinished uploads in places and in the locations that
// the configuration stages and publishes to. The error names the places that could not be
// checked; the list holds the uploads of the other places.
func UnfinishedUploads(ctx context.Context, places []string, cfg configs.Config) (all []env.Leftover, _ error) {
	var errs []error
	for _, place := range append(slices.Clone(places), cfg.Run.Staging, cfg.Publish.To) {
		if place == "" {
			continue
		}
		store, err := OpenStore(ctx, place, cfg.S3)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s, ok := store.(sinks.Sweeper)
		if !ok {
			continue
		}
		uploads, err := s.UnfinishedWrites(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
		for _, t := range uploads {
			all = append(all, env.Leftover{Kind: "upload", Name: t.Name, What: t.Key, Since: t.Since, Remove: t.Remove})
		}
	}
	return all, errors.Join(errs...)
}

// driver builds the driver of a sandbox kind, with the settings of sandbox.with if the
// configuration chooses that kind.
func driver(cfg configs.Config, kind string) (env.Driver, error) {
	var with configs.Block
	if kind == cfg.Sandbox.Kind {
		with = cfg.Sandbox.With
	}
	d, err := env.Drivers.Build(kind, with, struct{}{})
	if err != nil {
		return nil, fmt.Errorf("sandbox.with: %w", err)
	}
	return d, nil
}
