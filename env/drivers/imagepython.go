package drivers

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
)

// ImagePythons finds the interpreters of container images. It queries each image only once. The zero value is ready to
// use. Safe for concurrent use.
type ImagePythons struct {
	mu    sync.Mutex
	known map[string]imagePython // by image id
}

type imagePython struct {
	version string   // "" if the image has none
	program string   // path of the interpreter
	missing []string // those of the names python and python3 that are not in PATH
}

// Prepare makes sure that both python and python3 are in the PATH of a sandbox, and returns the version of Python. If
// the image has no Python, Prepare returns "" and no error. If image, the id of the image, is "", Prepare always
// queries the sandbox.
func (i *ImagePythons) Prepare(ctx context.Context, sandbox *guest.Client, image string) (version string, err error) {
	i.mu.Lock()
	python, known := i.known[image]
	i.mu.Unlock()
	if !known || image == "" {
		if python, err = findImagePython(ctx, sandbox); err != nil {
			return "", err
		}
		i.mu.Lock()
		if i.known == nil {
			i.known = map[string]imagePython{}
		}
		i.known[image] = python
		i.mu.Unlock()
	}
	return python.version, python.link(ctx, sandbox)
}

// imageQueryScript runs in an image with any version of Python, and needs no other program.
const imageQueryScript = `import os, platform, sys
print(platform.python_version())
print(sys.executable)
for n in ("python", "python3"):
    if not any(os.access(os.path.join(d, n), os.X_OK) for d in os.environ["PATH"].split(":")):
        print(n)`

func findImagePython(ctx context.Context, sandbox *guest.Client) (imagePython, error) {
	for _, name := range []string{"python3", "python"} {
		r, err := sandbox.Run(ctx, env.Command{Args: []string{name, "-c", imageQueryScript}, Dir: "/"})
		if err != nil {
			return imagePython{}, err
		}
		if f := strings.Fields(string(r.Output)); r.ExitCode == 0 && len(f) >= 2 {
			return imagePython{f[0], f[1], f[2:]}, nil
		}
	}
	return imagePython{}, nil
}

// link creates links for the missing names.
func (p imagePython) link(ctx context.Context, sandbox *guest.Client) error {
	if len(p.missing) == 0 {
		return nil
	}
	var links bytes.Buffer
	w := tar.NewWriter(&links)
	for _, name := range p.missing {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: p.program, Mode: 0o777}); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return sandbox.TarIn(ctx, BinPath, &links)
}
