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

// output is what an export writes: one file of rows, or a directory. Until keep
// it stands in a directory of its own beside its place, where what was there
// before is as it was.
type output struct {
	path  string // where it goes
	stage string // the directory it is made in
	made  string // within stage
	force bool
	rows  wire.RowWriter
	file  *os.File

	origins *os.File // split and episode of rows whose format has no field for them; nil until the first such row
}

// originSuffix is what the file with the origins of rows is called beside the output.
const originSuffix = ".origin.jsonl"

// createOutput begins a file or directory; one that exists is a usage error unless
// force says so, and a directory that no export has made is one in any case.
func createOutput(path, container string, force bool) (*output, error) {
	o := &output{path: path, force: force}
	if err := o.free(container == sinks.Dir); err != nil {
		return nil, err
	}
	var err error
	if o.stage, err = os.MkdirTemp(filepath.Dir(path), ".tracesmith-export-"); err != nil {
		return nil, Usage(fmt.Errorf("creating the output: %w", err))
	}
	o.made = filepath.Join(o.stage, "output")
	if container == sinks.Dir {
		err = os.Mkdir(o.made, 0o755)
	} else if o.file, err = os.OpenFile(o.made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
		o.rows, err = wire.NewRowWriter(o.file, container)
	}
	if err != nil {
		return nil, errors.Join(Usage(fmt.Errorf("creating the output: %w", err)), o.drop())
	}
	return o, nil
}

// free tells whether the output may take its place.
func (o *output) free(dir bool) error {
	st, err := os.Lstat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return Usage(fmt.Errorf("creating the output: %w", err))
	case !o.force:
		return Usage(fmt.Errorf("%s exists: choose another -o, or say --force to overwrite it", o.path))
	case !dir && !st.Mode().IsRegular():
		return Usage(fmt.Errorf("%s exists and is no plain file: choose another -o", o.path))
	case dir && !st.IsDir():
		return Usage(fmt.Errorf("%s exists and is no directory: choose another -o", o.path))
	case dir && !exported(o.path):
		return Usage(fmt.Errorf("%s exists and no export has made it: choose another -o", o.path))
	}
	return nil
}

// exported tells whether the report of an export stands beside a directory.
func exported(path string) bool {
	raw, err := os.ReadFile(path + lintSuffix)
	var report lint
	return err == nil && json.Unmarshal(raw, &report) == nil && report.Schema == lintSchema && report.Container == sinks.Dir
}

func (o *output) write(r sinks.Row) error {
	if r.Origin != nil {
		if err := o.writeOrigin(r.Origin); err != nil {
			return fmt.Errorf("writing origins: %w", err)
		}
	}
	if o.rows != nil {
		return o.rows.Write(r.Value, r.Columns)
	}
	path := filepath.Join(o.made, filepath.FromSlash(r.File))
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

// writeOrigin adds the line of a row to the file beside the output.
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

// keep puts the output into its place; what it replaces goes.
func (o *output) keep() error {
	if err := o.free(o.rows == nil); err != nil { // somebody may have come first
		return err
	}
	if o.rows == nil && o.force {
		if err := os.Rename(o.path, filepath.Join(o.stage, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replacing the output: %w", err)
		}
	}
	if err := os.Rename(o.made, o.path); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if o.origins != nil {
		if err := os.Rename(o.origins.Name(), o.path+originSuffix); err != nil {
			return fmt.Errorf("writing origins: %w", err)
		}
	}
	return o.drop()
}

// drop removes what was made and is not kept.
func (o *output) drop() error {
	for _, f := range []*os.File{o.file, o.origins} {
		if f != nil {
			_ = f.Close() // of a file that goes away, or is closed
		}
	}
	return os.RemoveAll(o.stage)
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
