package rundir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
)

const logFile = "run.log"

// maxLog is the size in bytes at which run.log becomes run.log.1, which is then replaced.
const maxLog = 8 << 20

// logWriter appends records to run.log. A failed write loses its record, but does not disturb the
// run.
type logWriter struct {
	path  string
	clean func(string) string
	file  *os.File
	size  int64
}

// newLogger returns a logger of all records. clean removes secrets from their text. slog.Handler
// writes one record at a time.
func newLogger(path string, clean func(string) string) (*slog.Logger, *logWriter, error) {
	w := &logWriter{path: path, clean: clean}
	if err := w.open(); err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})), w, nil
}

func (w *logWriter) open() error {
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("opening the log: %w", err), f.Close())
	}
	w.file, w.size = f, info.Size()
	return nil
}

func (w *logWriter) Write(p []byte) (int, error) {
	text := w.clean(string(p))
	if w.size > 0 && w.size+int64(len(text)) > maxLog {
		if err := errors.Join(w.file.Close(), os.Rename(w.path, w.path+".1"), w.open()); err != nil {
			return 0, err
		}
	}
	n, err := w.file.WriteString(text)
	w.size += int64(n)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *logWriter) Close() error { return w.file.Close() }
