package mutate

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"strings"
)

//go:embed python/*.py python/ops/*.py
var sources embed.FS

// packProgram returns the mutator program as a zip archive that a Python interpreter can run.
func packProgram() ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := fs.WalkDir(sources, "python", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		entry, err := w.CreateHeader(&zip.FileHeader{Name: strings.TrimPrefix(name, "python/"), Method: zip.Store})
		if err != nil {
			return err
		}
		_, err = entry.Write(text)
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
