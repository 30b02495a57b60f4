// Package formats writes and reads the rows of tables as Parquet, and writes the rows of
// views. It writes tables with Arrow v17 and reads every file back with parquet-go, an
// independent implementation, so that published files can be read with other libraries.
package formats

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// ParquetWriter is the name that manifests give to the library that writes tables.
const ParquetWriter = "arrow/go v17.0.0"

// ShardWriter writes one file of rows. It is not safe for concurrent use.
type ShardWriter[T any] interface {
	// Append adds the rows of one episode, or of any unit that must stay together.
	Append(rows []T) error
	// Size returns the bytes of the values appended so far, before encoding.
	Size() int64
	// Close completes, verifies and names the file. After an error from Append or
	// Close, no file remains.
	Close() (ShardInfo, error)
	// Abort deletes the file. After Close it does nothing.
	Abort()
}

// ShardInfo describes a finished file. Equal rows give an equal SHA256.
type ShardInfo struct {
	Path         string
	Rows         int64
	Bytes        int64
	Uncompressed int64 // bytes of the values before encoding
	RowGroups    int
	SHA256       string
	ReadBack     time.Duration // time that reading the file back took
}

// hashingFile hashes the written bytes and remembers the first error, because the library
// loses errors that occur when it closes a row group to start the next one. It has no
// Close method, because the library would call it before the file is synced.
type hashingFile struct {
	file *os.File
	sum  hash.Hash
	err  error
}

func (s *hashingFile) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.file.Write(b)
	s.sum.Write(b[:n])
	s.err = err
	return n, err
}

// parquetShard implements ShardWriter.
type parquetShard[T any] struct {
	table   *arrowrec.Table
	prefix  string // final path without "-<sha16>.parquet"
	file    *os.File
	sink    *hashingFile
	writer  *pqarrow.FileWriter
	builder *arrowrec.Builder[T]
	pending int // Append calls in the builder
	rows    int64
	raw     int64 // bytes of the values in row groups, before encoding
	groups  int   // row groups so far
	inGroup int64 // raw bytes in the current row group
	digest  *digest
}

// CreateParquet creates a file in dir. Close names it <name>-<sha16>.parquet, after
// the hash of its content. T must be the row type of t.
func CreateParquet[T any](dir, name string, t *arrowrec.Table, m arrowrec.Meta) (ShardWriter[T], error) {
	f, err := os.CreateTemp(dir, ".shard-*")
	if err != nil {
		return nil, fmt.Errorf("creating shard: %w", err)
	}
	p := &parquetShard[T]{
		table: t, prefix: filepath.Join(dir, name), file: f, sink: &hashingFile{file: f, sum: sha256.New()}, digest: newDigest(t),
		builder: arrowrec.NewBuilder[T](memory.NewGoAllocator(), t, m),
	}
	props := pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema())
	p.writer, err = pqarrow.NewFileWriter(p.builder.Schema(), p.sink, writerProperties(t), props)
	if err != nil {
		p.Abort()
		return nil, fmt.Errorf("creating shard of %s: %w", t.Name, err)
	}
	return p, nil
}

func (p *parquetShard[T]) Append(rows []T) error {
	for i := range rows {
		if err := p.builder.Append(&rows[i]); err != nil {
			p.Abort()
			return fmt.Errorf("appending row: %w", err)
		}
		p.digest.add(&rows[i])
	}
	p.rows += int64(len(rows))
	p.pending++
	if p.pending >= batchEpisodes || p.builder.RawBytes() >= firstGroup/4 {
		return p.flush()
	}
	return nil
}

func (p *parquetShard[T]) Size() int64 { return p.raw + p.builder.RawBytes() }

// flush writes the batch and starts a new row group if the current one is full. It
// counts raw bytes itself, because the library counts compressed, flushed pages.
func (p *parquetShard[T]) flush() error {
	raw := p.builder.RawBytes()
	rec := p.builder.Record()
	defer rec.Release()
	p.pending = 0
	if rec.NumRows() == 0 {
		return nil
	}
	limit := int64(groupBytes)
	if p.groups <= 1 {
		limit = firstGroup
	}
	if p.groups == 0 || p.inGroup+raw > limit {
		p.writer.NewBufferedRowGroup()
		p.groups++
		p.inGroup = 0
	}
	p.inGroup += raw
	p.raw += raw
	if err := errors.Join(p.writer.WriteBuffered(rec), p.sink.err); err != nil {
		p.Abort()
		return fmt.Errorf("writing shard of %s: %w", p.table.Name, err)
	}
	return nil
}

func (p *parquetShard[T]) Close() (ShardInfo, error) {
	if err := p.flush(); err != nil {
		return ShardInfo{}, err
	}
	err := p.writer.Close()
	p.writer = nil
	if err = cmp.Or(p.sink.err, err, p.file.Sync()); err != nil {
		p.Abort()
		return ShardInfo{}, fmt.Errorf("closing shard of %s: %w", p.table.Name, err)
	}
	start := time.Now()
	groups, err := p.verify()
	readBack := time.Since(start)
	if err != nil {
		p.Abort()
		return ShardInfo{}, err
	}
	st, err := p.file.Stat()
	if err != nil {
		p.Abort()
		return ShardInfo{}, fmt.Errorf("closing shard of %s: %w", p.table.Name, err)
	}
	sha := hex.EncodeToString(p.sink.sum.Sum(nil))
	info := ShardInfo{
		Path: fmt.Sprintf("%s-%s.parquet", p.prefix, sha[:16]), SHA256: sha,
		Rows: p.rows, Bytes: st.Size(), Uncompressed: p.raw, RowGroups: groups, ReadBack: readBack,
	}
	if err := os.Rename(p.file.Name(), info.Path); err != nil {
		p.Abort()
		return ShardInfo{}, fmt.Errorf("naming shard of %s: %w", p.table.Name, err)
	}
	p.builder.Release()
	_ = p.file.Close() // all data is synced
	return info, nil
}

// verify reads the file back and compares every value with what was appended.
func (p *parquetShard[T]) verify() (rowGroups int, err error) {
	f, err := openReader(p.file.Name(), p.table)
	if err != nil {
		return 0, fmt.Errorf("verifying shard of %s: %w", p.table.Name, err)
	}
	defer f.close()
	d := newDigest(p.table)
	var rows int64
	for row, err := range readRows[T](f) {
		if err != nil {
			return 0, fmt.Errorf("verifying shard of %s: %w", p.table.Name, err)
		}
		rows++
		d.add(&row)
	}
	if rows != p.rows || d.sum() != p.digest.sum() {
		return 0, fmt.Errorf("verifying shard of %s: the data read back differs from the data written (%d of %d rows)", p.table.Name, rows, p.rows)
	}
	return len(f.pq.RowGroups()), nil
}

func (p *parquetShard[T]) Abort() {
	if p.writer != nil {
		_ = p.writer.Close() // the file is deleted below
		p.writer = nil
	}
	if err := p.file.Close(); errors.Is(err, os.ErrClosed) {
		return
	}
	p.builder.Release()
	_ = os.Remove(p.file.Name())
}
