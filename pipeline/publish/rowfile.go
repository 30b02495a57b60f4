package publish

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tracesmith/tracesmith/schemas"
)

// rowFile keeps the rows of episodes on disk instead of in memory. Its file is deleted
// while it is open, so that a killed process leaves nothing behind. Calls of get may be
// concurrent, calls of put may not.
type rowFile struct {
	file *os.File
	end  int64
}

// span is the position of a row.
type span struct {
	offset int64
	size   int32
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

// put appends a row and returns its position.
func (r *rowFile) put(e schemas.EpisodeRow) (span, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return span{}, fmt.Errorf("storing the row of episode %s: %w", e.EpisodeID, err)
	}
	if _, err := r.file.WriteAt(raw, r.end); err != nil {
		return span{}, fmt.Errorf("storing the row of episode %s: %w", e.EpisodeID, err)
	}
	s := span{r.end, int32(len(raw))} // it fits, because staged objects are limited to far less than 2 GiB
	r.end += int64(len(raw))
	return s, nil
}

func (r *rowFile) get(s span) (e schemas.EpisodeRow, err error) {
	raw := make([]byte, s.size)
	if _, err = r.file.ReadAt(raw, s.offset); err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		err = fmt.Errorf("reading a row from the scratch file: %w", err)
	}
	return e, err
}

func (r *rowFile) close() { _ = r.file.Close() }
