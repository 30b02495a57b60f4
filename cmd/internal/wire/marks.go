package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/publish"
)

// Values of Mark.Mark.
const (
	MarkKeep   = "keep"
	MarkReject = "reject"
)

// Mark is what a reader noted about an episode. Marks are lines of marks.jsonl in the run
// directory or in the root of the dataset; the last line about an episode counts.
type Mark struct {
	EpisodeID string    `json:"episode_id"`
	Mark      string    `json:"mark"` // MarkKeep, MarkReject, or "" for no decision
	Note      string    `json:"note,omitempty"`
	At        time.Time `json:"at"`
}

// ErrNoMarks means that a place cannot hold marks, because it is not a local directory.
var ErrNoMarks = errors.New("only a local directory can hold marks: download the dataset to mark its episodes")

// MarksPath returns the path of the marks of the place, or ErrNoMarks.
func (d *Data) MarksPath() (string, error) {
	root, _ := publish.VersionOf(strings.TrimPrefix(d.Place, "file://"))
	if strings.Contains(root, "://") {
		return "", ErrNoMarks
	}
	return filepath.Join(root, publish.MarksKey), nil
}

// Marks returns the marks of the place by episode id.
func (d *Data) Marks() (map[string]Mark, error) {
	marks := map[string]Mark{}
	path, err := d.MarksPath()
	if err != nil {
		return marks, nil
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return marks, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading marks: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxMark)
	for n := 1; lines.Scan(); n++ {
		var m Mark
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.EpisodeID == "" || m.Mark != "" && m.Mark != MarkKeep && m.Mark != MarkReject {
			return nil, fmt.Errorf("%s, line %d is not a mark: fix or delete it", path, n)
		}
		if marks[m.EpisodeID] = m; m.Mark == "" && m.Note == "" {
			delete(marks, m.EpisodeID)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return marks, nil
}

// maxMark is the maximum length of a line of marks.jsonl, in bytes.
const maxMark = 1 << 20

// AddMark appends a mark to the marks of the place.
func (d *Data) AddMark(m Mark) error {
	path, err := d.MarksPath()
	if err != nil {
		return err
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a mark: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("writing a mark: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing a mark: %w", err)
	}
	return nil
}
