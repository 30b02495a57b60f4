package publish

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tracesmith/tracesmith/schemas"
)

// rowFile keeps the rows of episodes on disk instead of in memory. Its file is
// unlinked, so a killed process leaves nothing behind. Writes must not be concurrent;
// reads may be.
type rowFile struct {
	file *os.File
	end  int64
}

// span is the position of a row.
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
