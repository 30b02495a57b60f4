package publish

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// rowFile keeps the rows of episodes out of memory: a selection reads them again,
// once or twice. Its file has no name, so that nothing can be left of it. One
// goroutine at a time writes; any may read what was written.
type rowFile struct {
	file *os.File
	end  int64
}

// span is where a row stands.
type span struct {
	at   int64
	size int32
}

func newRowFile(scratch string) (*rowFile, error) {
	f, err := os.CreateTemp(scratch, "tracesmith-rows-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("making a scratch file: %w", err)
	}
	return &rowFile{file: f}, nil
}

func (r *rowFile) put(e schemas.EpisodeRow) (span, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return span{}, fmt.Errorf("keeping the row of episode %s: %w", e.EpisodeID, err)
	}
	if _, err := r.file.WriteAt(raw, r.end); err != nil {
		return span{}, fmt.Errorf("keeping the row of episode %s: %w", e.EpisodeID, err)
	}
	s := span{r.end, int32(len(raw))} // a staged object is bounded far below 2 GiB
	r.end += int64(len(raw))
	return s, nil
}

func (r *rowFile) get(s span) (e schemas.EpisodeRow, err error) {
	raw := make([]byte, s.size)
	if _, err = r.file.ReadAt(raw, s.at); err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		err = fmt.Errorf("reading a row that was kept: %w", err)
	}
	return e, err
}

func (r *rowFile) close() { _ = r.file.Close() }

// row is that of a staged episode, with what annotations say.
func (in *inputs) row(ref stagedRef) (schemas.EpisodeRow, error) {
	e, err := in.rows.get(ref.row)
	in.judged(&e)
	return e, err
}

func placeOf(e schemas.EpisodeRow) shard.Key {
	return shard.Key{Split: e.Split, Repo: e.Repo, InstanceID: e.InstanceID, EpisodeID: e.EpisodeID}
}
