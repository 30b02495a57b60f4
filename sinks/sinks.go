// Package sinks is where data leaves: Store keeps objects (a directory or a
// bucket), Format writes rows as files, View renders rows for a trainer.
// Implementations live in sinks/stores, sinks/formats and sinks/views.
package sinks

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Errors of a Store. ErrExists is how create-only writes lose a race, ErrChanged
// how a swap does.
var (
	ErrExists   = errors.New("object exists already")
	ErrChanged  = errors.New("object has changed meanwhile")
	ErrNotFound = errors.New("no such object")
	// ErrUnsafe: the store ignores conditional writes, so two writers could
	// overwrite each other.
	ErrUnsafe = errors.New("store ignores conditional writes")
	// ErrDenied: credentials missing or refused. Final.
	ErrDenied = errors.New("store refused the credentials")
)

// Store keeps immutable objects under slash-separated keys. Safe for
// concurrent use. Errors other than the sentinels may be retried.
type Store interface {
	// URI names the store for people and for manifests; no secrets.
	URI() string
	// Create writes a new object, all or nothing; ErrExists if the key is taken.
	Create(ctx context.Context, key string, body []byte) error
	// CreateFile is Create for a local file, streamed.
	CreateFile(ctx context.Context, key, path string) error
	// Copy creates key with the content of the object from, within the store;
	// ErrExists if the key is taken, ErrNotFound if from is not there.
	Copy(ctx context.Context, from, key string) error
	// Swap replaces the content of an object by body if it is old, in one step;
	// ErrChanged if it is not, or if the object is gone.
	Swap(ctx context.Context, key string, old, body []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Head returns the size and the SHA-256 recorded at creation ("" if the
	// object was not written by us).
	Head(ctx context.Context, key string) (Object, error)
	// List yields the objects below prefix in key order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	Delete(ctx context.Context, key string) error
	// Probe checks that conditional writes hold; ErrUnsafe if not.
	Probe(ctx context.Context) error
}

// Local is a Store whose objects are files of this machine.
type Local interface {
	LocalPath(key string) string
}

// Sweeper is a Store that may hold pieces of objects which were never completed:
// their writer was killed.
type Sweeper interface {
	// Torn lists the pieces below the store, oldest first. Those of a writer that
	// lives are among them: only their age tells.
	Torn(ctx context.Context) ([]Torn, error)
}

// Torn is what an unfinished write left.
type Torn struct {
	Key    string    // of the object that was meant; "" where that is not known
	Name   string    // of the piece
	Since  time.Time // when it was begun
	Remove func(ctx context.Context) error
}

// Object is one entry of a Store.
type Object struct {
	Key    string
	Size   int64
	SHA256 string
}

// Staged is one finished episode as staging holds it: redacted, immutable.
type Staged struct {
	Episode schemas.EpisodeRow   `json:"episode"`
	Steps   []schemas.StepRow    `json:"steps"`
	Tools   []schemas.ToolSchema `json:"tools"`
	// ToolSets are the lists that turns were shown where that was not always Tools.
	ToolSets [][]schemas.ToolSchema `json:"tool_sets,omitempty"`
	Blobs    []Blob                 `json:"blobs,omitempty"`
	// Calls are all that were made for the episode, also those its rows do not
	// show; nil: nobody counted.
	Calls *schemas.Calls `json:"calls,omitempty"`
}

// Blob is a text too long for its row, addressed by content.
type Blob struct {
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
	MediaType string `json:"media_type"`
	Content   string `json:"content"`
}
