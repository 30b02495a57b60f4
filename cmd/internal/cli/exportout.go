package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// output is the file of rows or the directory that an export writes. The export writes it in
// a temporary directory, and keep moves it into place. Until then, an earlier output stays
// unchanged.
type output struct {
	path  string // final path
	stage string // temporary directory next to path
	temp  string // path of the unfinished output in stage
	force bool
	rows  wire.RowWriter
	file  *os.File

	origins *os.File // split and episode of rows whose format has no field for them; nil until the first such row
}

// originSuffix is the suffix that the file with the origins of rows adds to the name of the
// output.
const originSuffix = ".origin.jsonl"

// createOutput starts a file or directory. An existing one is a usage error, unless
// force is set and it is a plain file or a directory that export wrote.
func createOutput(path, container string, force bool) (*output, error) {
	o := &output{path: path, force: force}
	if err := o.checkPath(container == sinks.Dir); err != nil {
		return nil, err
	}
	var err error
	if o.stage, err = os.MkdirTemp(filepath.Dir(path), ".tracesmith-export-"); err != nil {
		return nil, Usage(creating(path, err))
	}
	o.temp = filepath.Join(o.stage, "output")
	if container == sinks.Dir {
		err = os.Mkdir(o.temp, 0o755)
	} else if o.file, err = os.OpenFile(o.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
		o.rows, err = wire.NewRowWriter(o.file, container)
	}
	if err != nil {
		return nil, errors.Join(Usage(fmt.Errorf("creating the output: %w", err)), o.drop())
	}
	return o, nil
}

// checkPath returns an error if the output must not replace what is at its path.
func (o *output) checkPath(dir bool) error {
	st, err := os.Lstat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return Usage(fmt.Errorf("creating the output: %w", err))
	case !o.force:
		return Usage(fmt.Errorf("%s exists: choose another -o, or use --force to overwrite it", o.path))
	case !dir && !st.Mode().IsRegular():
		return Usage(fmt.Errorf("%s exists and is not a plain file: choose another -o", o.path))
	case dir && !st.IsDir():
		return Usage(fmt.Errorf("%s exists and is not a directory: choose another -o", o.path))
	case dir && !isExport(o.path):
		return Usage(fmt.Errorf("%s exists and was not written by export: choose another -o", o.path))
	}
	return nil
}

// isExport reports whether export wrote the directory: whether its report is next to it.
func isExport(path string) bool {
	raw, err := os.ReadFile(path + lintSuffix)
	var report lint
	return err == nil && json.Unmarshal(raw, &report) == nil && report.Schema == lintSchema && report.Container == sinks.Dir
}

// write adds a row to the file, or writes the row's file into the directory.
func (o *output) write(r sinks.Row) error {
	if r.Origin != nil {
		if err := o.writeOrigin(r.Origin); err != nil {
			return fmt.Errorf("writing origins: %w", err)
		}
	}
	if o.rows != nil {
		return o.rows.Write(r.Value, r.Columns)
	}
	path := filepath.Join(o.temp, filepath.FromSlash(r.File))
	if !filepath.IsLocal(filepath.FromSlash(r.File)) {
		return fmt.Errorf("a row would be written to %q, outside the output", r.File)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	if err := os.WriteFile(path, r.Body, 0o644); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

// writeOrigin adds a line to the file with the origins of rows.
func (o *output) writeOrigin(origin any) error {
	if o.origins == nil {
		var err error
		if o.origins, err = os.Create(filepath.Join(o.stage, "origins")); err != nil {
			return err
		}
	}
	line, err := schemas.CanonicalJSON(origin)
	if err != nil {
		return err
	}
	_, err = o.origins.Write(append(line, '\n'))
	return err
}

func (o *output) close() error {
	if o.origins != nil {
		if err := o.origins.Close(); err != nil {
			return fmt.Errorf("writing origins: %w", err)
		}
	}
	if o.rows == nil {
		return nil
	}
	err := o.rows.Close()
	if cerr := o.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// keep moves the output into place and removes what it replaces.
func (o *output) keep() error {
	if err := o.checkPath(o.rows == nil); err != nil { // another process may have created the path meanwhile
		return err
	}
	if o.rows == nil && o.force {
		if err := os.Rename(o.path, filepath.Join(o.stage, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replacing the output: %w", err)
		}
	}
	if err := os.Rename(o.temp, o.path); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if o.origins != nil {
		if err := os.Rename(o.origins.Name(), o.path+originSuffix); err != nil {
			return fmt.Errorf("writing origins: %w", err)
		}
	}
	return o.drop()
}

// drop removes the temporary directory.
func (o *output) drop() error {
	for _, f := range []*os.File{o.file, o.origins} {
		if f != nil {
			_ = f.Close() // the file is removed below, or already closed
		}
	}
	return os.RemoveAll(o.stage)
}

// containerOf returns the container format that the name of an output ends with; "" if it
// ends with none.
func containerOf(path string) string {
	for _, c := range sinks.Containers {
		if strings.HasSuffix(path, "."+c) {
			return c
		}
	}
	return ""
}
