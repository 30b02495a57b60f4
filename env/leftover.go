package env

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leftover is a resource that a dead process did not remove, such as a container or a
// directory.
type Leftover struct {
	Kind  string    // "container", "volume", "process", "directory", ...
	Name  string    // the identifier that tools of its kind accept: an id, a pid, a path
	What  string    // its purpose, "" if unknown
	Since time.Time // when it was created, zero if unknown
	// Remove removes it. It returns nil if the resource no longer exists.
	Remove func(context.Context) error
}

// LeftoverLister lists the leftovers of one source, such as a driver or a cache. It never
// lists one whose owner is alive or may be alive.
type LeftoverLister interface {
	Leftovers(ctx context.Context) ([]Leftover, error)
}

// ErrUnreachable is the error of a LeftoverLister whose daemon or cluster does not
// respond. This is normal, because most hosts have none.
var ErrUnreachable = errors.New("not reachable")

// RemoveLeftovers removes all leftovers of k and returns how many it removed.
// ErrUnreachable from k is not an error.
func RemoveLeftovers(ctx context.Context, k LeftoverLister) (n int, err error) {
	list, err := k.Leftovers(ctx)
	if errors.Is(err, ErrUnreachable) {
		return 0, nil
	}
	for _, l := range list {
		if rmErr := l.Remove(ctx); rmErr != nil {
			err = errors.Join(err, fmt.Errorf("removing %s %s: %w", l.Kind, l.Name, rmErr))
			continue
		}
		n++
	}
	return n, err
}
