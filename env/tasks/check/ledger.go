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

// maxLine bounds one line of a ledger.
const maxLine = 64 << 20

// Ledger is a file of reports, one JSON line per finished task; of two lines on a task the later one
// counts. It is the state of a batch, which continues from it after it was killed. Safe for
// concurrent use by one process at a time.
type Ledger struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]Report // by task id
}

// ErrHeld is the error if another process writes the ledger.
var ErrHeld = errors.New("another process is writing it")

// OpenLedger opens and reads a ledger, or makes an empty one. It drops an incomplete last line. With
// the name "" the ledger has no file.
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
	if err := l.take(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the report %s: %w", name, err), f.Close())
	}
	return l, nil
}

func (l *Ledger) take() error {
	if err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	} else if err != nil {
		return err
	}
	var whole int64
	lines := bufio.NewScanner(l.file)
	lines.Buffer(nil, maxLine)
	lines.Split(wholeLines)
	for n := 1; lines.Scan(); n++ {
		whole += int64(len(lines.Bytes()))
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("line %d is no report: %w", n, err)
		}
		if _, known := Meanings[r.Status]; r.TaskID == "" || !known {
			return fmt.Errorf("line %d is no report: it names no task or the unknown status %q", n, r.Status)
		}
		l.known[r.TaskID] = r
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := l.file.Truncate(whole); err != nil {
		return err
	}
	_, err := l.file.Seek(whole, io.SeekStart)
	return err
}

// wholeLines splits at newlines and leaves out an incomplete last line.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Known returns the report on a task, if it was checked with at least that many runs or found
// unusable.
func (l *Ledger) Known(taskID string, runs int) (Report, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.known[taskID]
	return r, ok && (r.Runs >= runs || !r.Status.Usable())
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
