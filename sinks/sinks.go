// Package sinks defines the outputs of the pipeline: Store keeps objects in a
// directory or a bucket, and View renders episodes for a trainer. The
// implementations are in sinks/stores and sinks/views; sinks/formats writes rows to
// files.
package sinks

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Errors of a Store. If another writer was first, Create returns ErrExists and Swap
// returns ErrChanged.
var (
	ErrExists   = errors.New("object already exists")
	ErrChanged  = errors.New("object was changed by another writer")
	ErrNotFound = errors.New("no such object")
	// ErrUnsafe means that the store ignores conditional writes, so that two writers
	// could overwrite each other.
	ErrUnsafe = errors.New("store ignores conditional writes")
	// ErrDenied means that credentials are missing or that the server refused them. A retry
	// does not help.
	ErrDenied = errors.New("store refused the credentials")
)

// Store keeps objects under slash-separated keys. Only Swap changes an object. A
// Store is safe for concurrent use. After an error other than the sentinels, the
// caller may retry.
type Store interface {
	// URI identifies the store in messages and manifests. It contains no secrets.
	URI() string
	// Create writes a new object atomically. It returns ErrExists if the key exists.
	Create(ctx context.Context, key string, body []byte) error
	// CreateFile is like Create, but streams the content of a local file.
	CreateFile(ctx context.Context, key, path string) error
	// Copy creates key with the content of the object from. It returns ErrExists if key
	// exists, and ErrNotFound if from does not.
	Copy(ctx context.Context, from, key string) error
	// Swap atomically replaces the content of an object with body if it equals old. It
	// returns ErrChanged if the content differs or the object does not exist.
	Swap(ctx context.Context, key string, old, body []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Head returns the size and the SHA-256 recorded at creation ("" if another
	// program wrote the object).
	Head(ctx context.Context, key string) (Object, error)
	// List yields the objects below prefix in key order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	Delete(ctx context.Context, key string) error
	// Probe checks that the store enforces conditional writes. It returns ErrUnsafe if it
	// does not.
	Probe(ctx context.Context) error
}

// Local is a Store whose objects are files on this machine.
type Local interface {
	LocalPath(key string) string
}

// Sweeper is a Store that may contain parts of objects whose writer was killed.
type Sweeper interface {
	// UnfinishedWrites lists the unfinished writes in the store, oldest first. The list
	// includes the writes of running writers, which only their age distinguishes.
	UnfinishedWrites(ctx context.Context) ([]UnfinishedWrite, error)
}

// UnfinishedWrite is an unfinished write.
type UnfinishedWrite struct {
	Key    string    // key of the object; "" if unknown
	Name   string    // name of the unfinished part, for messages
	Since  time.Time // when the write began
	Remove func(ctx context.Context) error
}

// Object is one entry of a Store.
type Object struct {
	Key    string
	Size   int64
	SHA256 string
}

// Staged is one finished, redacted episode in staging.
type Staged struct {
	Episode schemas.EpisodeRow   `json:"episode"`
	Steps   []schemas.StepRow    `json:"steps"`
	Tools   []schemas.ToolSchema `json:"tools"`
	// ToolSets holds the distinct lists of tools that the model saw in a turn, if they
	// differ from Tools.
	ToolSets [][]schemas.ToolSchema `json:"tool_sets,omitempty"`
	Blobs    []Blob                 `json:"blobs,omitempty"`
	// Calls counts all model calls of the episode, including calls that no row contains.
	// It is nil if they were not counted.
	Calls *schemas.Calls `json:"calls,omitempty"`
}

// Blob is a text that is too long for its row, addressed by content.
type Blob struct {
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
	MediaType string `json:"media_type"`
	Content   string `json:"content"`
}
