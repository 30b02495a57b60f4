// Package sinks is where data leaves: Store keeps objects (a directory or a
// bucket), Format writes rows as files, View renders rows for a trainer.
// Implementations live in sinks/stores, sinks/formats and sinks/views.
package sinks

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/tracesmith/tracesmith/schemas"
)

// Errors of a Store. ErrExists is how create-only writes lose a race.
var (
	ErrExists   = errors.New("object exists already")
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
	// Replace writes an object that may exist (pointers only).
	Replace(ctx context.Context, key string, body []byte) error
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
