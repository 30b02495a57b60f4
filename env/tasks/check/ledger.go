package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLine is the largest length of a line of a ledger, in bytes.
const maxLine = 64 << 20

// Ledger is a file of reports, one JSON line per checked task. If a task has several lines, the last one counts. A
// batch that was killed continues from its ledger. A Ledger is safe for concurrent use, but only one process can open
// the file at a time.
type Ledger struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]Report // by task id
}

// ErrLocked is the error of OpenLedger if another process has the ledger open.
var ErrLocked = errors.New("another process is writing it")

// OpenLedger opens and reads a ledger, or creates an empty one. It drops an incomplete last line. If the name is "",
// the ledger exists only in memory.
func OpenLedger(name string) (*Ledger, error) {
	l := &Ledger{known: map[string]Report{}}
	if name == "" {
		return l, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the report: %w", err)
	}
	l.file = f
	if err := l.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the report %s: %w", name, err), f.Close())
	}
	return l, nil
}

// load locks and reads the file.
func (l *Ledger) load() error {
	if err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	} else if err != nil {
		return err
	}
	var size int64 // of the complete lines
	lines := bufio.NewScanner(l.file)
	lines.Buffer(nil, maxLine)
	lines.Split(completeLines)
	for n := 1; lines.Scan(); n++ {
		size += int64(len(lines.Bytes()))
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("line %d is not a report: %w", n, err)
		}
		if _, known := Meanings[r.Status]; r.TaskID == "" || !known {
			return fmt.Errorf("line %d is not a report: it has no task_id, or its status %q is unknown", n, r.Status)
		}
		l.known[r.TaskID] = r
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := l.file.Truncate(size); err != nil {
		return err
	}
	_, err := l.file.Seek(size, io.SeekStart)
	return err
}

// completeLines splits at newlines and leaves out an incomplete last line.
func completeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Known returns the report on a task. ok is false if there is none, or if the task is usable but was checked with fewer
// runs.
func (l *Ledger) Known(taskID string, runs int) (_ Report, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, found := l.known[taskID]
	return r, found && (r.Runs >= runs || !r.Status.Usable())
}

// Add appends a report.
func (l *Ledger) Add(r Report) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[r.TaskID] = r
	if l.file == nil {
		return nil
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Ledger) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
