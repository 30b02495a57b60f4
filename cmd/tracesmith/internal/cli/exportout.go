package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
	"github.com/tracesmith/tracesmith/sinks"
)

// output is what an export writes: one file of rows, or a directory.
type output struct {
	path string
	made bool // by us: removed when there is nothing to keep
	rows wire.RowWriter
	file *os.File
}

// createOutput makes the file or directory; one that exists is a usage error
// unless force says so.
func createOutput(path, container string, force bool) (*output, error) {
	exists := Usage(fmt.Errorf("%s exists: choose another -o, or say --force to overwrite it", path))
	if container == sinks.Dir {
		err := os.Mkdir(path, 0o755)
		switch {
		case errors.Is(err, os.ErrExist) && !force:
			return nil, exists
		case err != nil && !errors.Is(err, os.ErrExist):
			return nil, Usage(fmt.Errorf("creating the output: %w", err))
		}
		return &output{path: path, made: err == nil}, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, exists
	}
	if err != nil {
		return nil, Usage(fmt.Errorf("creating the output: %w", err))
	}
	out := &output{path: path, made: true, file: file}
	if out.rows, err = wire.NewRowWriter(file, container); err != nil {
		return nil, errors.Join(err, out.drop())
	}
	return out, nil
}

func (o *output) write(r sinks.Row) error {
	if o.rows != nil {
		return o.rows.Write(r.Value, r.Columns)
	}
	path := filepath.Join(o.path, filepath.FromSlash(r.File))
	if !filepath.IsLocal(filepath.FromSlash(r.File)) {
		return fmt.Errorf("a row is to be written to %q, outside the output", r.File)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	if err := os.WriteFile(path, r.Body, 0o644); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

func (o *output) close() error {
	if o.rows == nil {
		return nil
	}
	err := o.rows.Close()
	if cerr := o.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// drop removes what was made.
func (o *output) drop() error {
	if o.file != nil {
		_ = o.file.Close() // of a file that goes away
	}
	if !o.made {
		return nil
	}
	return os.RemoveAll(o.path)
}

// containerOf is what the name of an output asks for; "" if it asks for nothing.
func containerOf(path string) string {
	for _, c := range sinks.Containers {
		if strings.HasSuffix(path, "."+c) {
			return c
		}
	}
	return ""
}
