package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// datasetClaim is the content of dataset.json, which reserves a destination for one dataset.
type datasetClaim struct {
	Dataset string `json:"dataset"`
	Layout  int    `json:"layout"`
}

// ContainsDataset reports whether dest already contains the dataset with this name. It
// returns false if dest is empty, ErrOccupied if dest contains anything else, and ErrName if
// the name is invalid.
func ContainsDataset(ctx context.Context, dest sinks.Store, name string) (exists bool, err error) {
	raw, err := readClaim(ctx, dest, name)
	return raw != nil, err
}

// readClaim is like ContainsDataset, but returns the content of dataset.json, or nil if dest is empty.
func readClaim(ctx context.Context, dest sinks.Store, name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	current, err := dest.Get(ctx, claimKey)
	if errors.Is(err, sinks.ErrNotFound) {
		for o, listErr := range dest.List(ctx, "") {
			if listErr != nil {
				return nil, fmt.Errorf("reading the destination: %w", listErr)
			}
			// If the claim exists by now, another publisher has just written it.
			if current, err = dest.Get(ctx, claimKey); errors.Is(err, sinks.ErrNotFound) {
				return nil, fmt.Errorf("%w: %s holds %s and is not a tracesmith dataset: choose an empty place", ErrOccupied, dest.URI(), o.Key)
			}
			break
		}
		if errors.Is(err, sinks.ErrNotFound) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the destination: %w", err)
	}
	var c datasetClaim
	if err := json.Unmarshal(current, &c); err != nil || c.Dataset == "" {
		return nil, fmt.Errorf("%w: %s/%s is not a tracesmith file: choose an empty place", ErrOccupied, dest.URI(), claimKey)
	}
	if c.Dataset != name || c.Layout < 1 || c.Layout > layoutVersion {
		return nil, fmt.Errorf("%w: %s holds dataset %q (layout %d), not %q: choose another place or the same name", ErrOccupied, dest.URI(), c.Dataset, c.Layout, name)
	}
	return current, nil
}

// claim claims dest for the dataset with this name. Before the first claim it checks that
// the store enforces conditional writes. In an existing claim it raises the layout, so that
// older programs no longer publish there.
func claim(ctx context.Context, dest sinks.Store, name string) error {
	raw, err := schemas.CanonicalJSON(datasetClaim{Dataset: name, Layout: layoutVersion})
	if err != nil {
		return err
	}
	current, err := readClaim(ctx, dest, name)
	switch {
	case err != nil || bytes.Equal(current, raw):
		return err
	case current != nil:
		err = dest.Swap(ctx, claimKey, current, raw)
	default:
		if err := dest.Probe(ctx); err != nil {
			return err
		}
		err = dest.Create(ctx, claimKey, raw)
	}
	if errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrChanged) { // another publisher was first
		_, err = readClaim(ctx, dest, name)
		return err
	}
	if err != nil {
		return fmt.Errorf("claiming the destination: %w", err)
	}
	return nil
}
