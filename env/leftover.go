package env

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leftover is one thing that a process which is gone left behind.
type Leftover struct {
	Kind  string    // "container", "volume", "process", "directory", ...
	Name  string    // as its own tools know it: an id, a pid, a path
	What  string    // what it was for, "" if that is unknown
	Since time.Time // when it was made, zero if that is unknown
	// Remove does it away; what has gone meanwhile is no error.
	Remove func(context.Context) error
}

// Keeper is what can tell of leftovers: a driver, or whatever else puts things
// beside sandboxes. It never names one whose owner lives or may live.
type Keeper interface {
	Leftovers(ctx context.Context) ([]Leftover, error)
}

// ErrAbsent is the error of a keeper whose daemon or cluster does not answer:
// most hosts have none.
var ErrAbsent = errors.New("nobody answers")

// RemoveLeftovers removes all a keeper tells of and reports how many went.
// Where nobody answers there is nothing to remove.
func RemoveLeftovers(ctx context.Context, k Keeper) (int, error) {
	list, err := k.Leftovers(ctx)
	if errors.Is(err, ErrAbsent) {
		return 0, nil
	}
	n := 0
	for _, l := range list {
		if rmErr := l.Remove(ctx); rmErr != nil {
			err = errors.Join(err, fmt.Errorf("removing %s %s: %w", l.Kind, l.Name, rmErr))
			continue
		}
		n++
	}
	return n, err
}
