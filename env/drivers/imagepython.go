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

// ImagePythons looks up the interpreters of container images and asks each image only once. The zero value is ready.
// Safe for concurrent use.
type ImagePythons struct {
	mu    sync.Mutex
	known map[string]imagePython // by image id
}

type imagePython struct {
	version string // "" if the image has none
	program string // path of the interpreter
	missing []string
}

// Prepare makes both python and python3 resolve in a sandbox of an image, and returns the version. An image without
// Python is not an error and has the version "". Without an image id, the sandbox is always asked.
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

// imageProbe needs nothing of an image but an interpreter, of any age.
const imageProbe = `import os, platform, sys
print(platform.python_version())
print(sys.executable)
for n in ("python", "python3"):
    if not any(os.access(os.path.join(d, n), os.X_OK) for d in os.environ["PATH"].split(":")):
        print(n)`

func findImagePython(ctx context.Context, sandbox *guest.Client) (imagePython, error) {
	for _, name := range []string{"python3", "python"} {
		r, err := sandbox.Run(ctx, env.Command{Args: []string{name, "-c", imageProbe}, Dir: "/"})
		if err != nil {
			return imagePython{}, err
		}
		if f := strings.Fields(string(r.Output)); r.ExitCode == 0 && len(f) >= 2 {
			return imagePython{f[0], f[1], f[2:]}, nil
		}
	}
	return imagePython{}, nil
}

// link makes the missing names resolve.
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
