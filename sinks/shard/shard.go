// Package shard splits a sorted stream of episodes into files such that added data
// changes few of them. A new file begins before each repository whose hash ends in a
// given number of zero bits. The repositories between two such points form a bucket,
// and new data changes only the files of its bucket. Within a bucket, a new file begins
// at an episode boundary once a file has MaxBytes of values.
package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// MaxBytes is the default size of a shard, before encoding.
const MaxBytes = 512 << 20

// Config configures a Writer.
type Config struct {
	Dir      string // must exist
	Table    *arrowrec.Table
	Meta     arrowrec.Meta
	MaxBytes int64 // 0: MaxBytes
	Buckets  Buckets
}

// Buckets is the number of zero bits in which the hash of a repository must end for
// the repository to begin a new file. If it is negative, no repository does.
type Buckets int

// BucketsFor returns Buckets for a table with the given number of repositories and
// bytes, such that a bucket is on average half a file, within a factor of two. It
// rounds both numbers to powers of two, so that the buckets of a growing table change
// only when one of them has doubled, not with each repository.
func BucketsFor(repos int, size, maxBytes int64) Buckets {
	maxBytes = cmp.Or(maxBytes, MaxBytes)
	files := size / (maxBytes/2 + 1)
	if files == 0 || repos < 2 {
		return -1
	}
	return Buckets(max(0, bits.Len64(uint64(repos))-bits.Len64(uint64(files))))
}

func (b Buckets) startsFile(repo string) bool {
	if b < 0 {
		return false
	}
	sum := sha256.Sum256([]byte(repo))
	return binary.BigEndian.Uint64(sum[:])&(1<<b-1) == 0
}

// Key is the sort key of a row. Split is empty in tables that are not split; their files are
// named part-….
type Key struct{ Split, Repo, InstanceID, EpisodeID string }

// Compare compares keys in the sort order of tables.
func (k Key) Compare(o Key) int { return slices.Compare(k.fields(), o.fields()) }

func (k Key) fields() []string { return []string{k.Split, k.Repo, k.InstanceID, k.EpisodeID} }

// Shard is one finished file.
type Shard struct {
	formats.ShardInfo
	Split  string
	MinKey []string // split, repo, instance_id, episode_id
	MaxKey []string
}

// Writer writes the shards of one table in the order of their keys. It is not safe
// for concurrent use.
type Writer[T any] struct {
	cfg      Config
	current  formats.ShardWriter[T]
	min, max Key
	finished []Shard
}

// New returns a writer. T must be the row type of the table.
func New[T any](cfg Config) *Writer[T] {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, MaxBytes)
	return &Writer[T]{cfg: cfg}
}

// Append adds the rows of one episode. Keys must not decrease.
func (w *Writer[T]) Append(k Key, rows []T) error {
	if w.current != nil && w.cutBefore(k) {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.current == nil {
		name := cmp.Or(k.Split, "part")
		f, err := formats.CreateParquet[T](w.cfg.Dir, name, w.cfg.Table, w.cfg.Meta)
		if err != nil {
			return err
		}
		w.current, w.min = f, k
	}
	w.max = k
	return w.current.Append(rows)
}

func (w *Writer[T]) cutBefore(k Key) bool {
	return k.Split != w.max.Split || w.current.Size() >= w.cfg.MaxBytes || k.Repo != w.max.Repo && w.cfg.Buckets.startsFile(k.Repo)
}

func (w *Writer[T]) finish() error {
	info, err := w.current.Close()
	w.current = nil
	if err != nil {
		return err
	}
	w.finished = append(w.finished, Shard{ShardInfo: info, Split: w.min.Split, MinKey: w.min.fields(), MaxKey: w.max.fields()})
	return nil
}

// Close finishes the last file and returns all files in key order.
func (w *Writer[T]) Close() ([]Shard, error) {
	if w.current != nil {
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	if len(w.finished) == 0 {
		return nil, errors.New("closing shards: no rows were written")
	}
	return w.finished, nil
}

// Abort deletes the unfinished file. Finished files remain in Dir.
func (w *Writer[T]) Abort() {
	if w.current != nil {
		w.current.Abort()
		w.current = nil
	}
}

// Used reports whether any row was appended.
func (w *Writer[T]) Used() bool { return w.current != nil || len(w.finished) > 0 }
