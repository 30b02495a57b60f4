package drivers

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
)

// dockerImage is what the daemon says about an image, asked once: everything
// started by its name in this process is the same image.
type dockerImage struct {
	id, digest string
	env        []string
	volumes    []string // VOLUME declarations
}

// imagePython is what was found out inside an image.
type imagePython struct {
	version string // "" without one
	program string // path of the interpreter
	missing []string
}

// image looks an image up, fetching it where the settings say so.
func (d *docker) image(ctx context.Context, cli *client.Client, name string) (*dockerImage, error) {
	if known := d.seenImage(name); known != nil {
		return known, nil
	}
	found, err := cli.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) && d.config.Pull == pullMissing {
		found, err = d.fetch(ctx, cli, name)
	}
	if err != nil {
		return nil, err
	}
	if d.config.Platform == "" && (found.Os != "linux" || found.Architecture != runtime.GOARCH) {
		return nil, fmt.Errorf("image %s is made for %s/%s, and the guest for linux/%s: use an image of that platform (docker pull --platform linux/%s), or, where the daemon emulates the other, set sandbox.with.platform",
			name, found.Os, found.Architecture, runtime.GOARCH, runtime.GOARCH)
	}
	img := &dockerImage{id: found.ID, digest: found.ID}
	if len(found.RepoDigests) > 0 {
		img.digest = found.RepoDigests[0]
	}
	if c := found.Config; c != nil {
		img.env = c.Env
		for _, v := range slices.Sorted(maps.Keys(c.Volumes)) {
			img.volumes = append(img.volumes, path.Clean(v))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.images[name] = img
	return img, nil
}

// seenImage is what was found out about an image, nil before it was asked for.
func (d *docker) seenImage(name string) *dockerImage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[name]
}

// pythonProbe needs nothing of an image but an interpreter, of any age.
const pythonProbe = `import os, platform, sys
print(platform.python_version())
print(sys.executable)
for n in ("python", "python3"):
    if not any(os.access(os.path.join(d, n), os.X_OK) for d in os.environ["PATH"].split(":")):
        print(n)`

// python makes python and python3 both resolve, and reports the version. An
// image without one is no error: tools that need it say so.
func (d *docker) python(ctx context.Context, s env.Sandbox, id string) (imagePython, error) {
	d.mu.Lock()
	found, known := d.pythons[id]
	d.mu.Unlock()
	if !known {
		var err error
		if found, err = findPython(ctx, s); err != nil {
			return found, err
		}
		d.mu.Lock()
		d.pythons[id] = found
		d.mu.Unlock()
	}
	return found, found.link(ctx, s)
}

// findPython asks the interpreter of an image about itself.
func findPython(ctx context.Context, s env.Sandbox) (imagePython, error) {
	for _, name := range []string{"python3", "python"} {
		r, err := s.Run(ctx, env.Command{Args: []string{name, "-c", pythonProbe}, Dir: "/"})
		if err != nil {
			return imagePython{}, err
		}
		if f := strings.Fields(string(r.Output)); r.ExitCode == 0 && len(f) >= 2 {
			return imagePython{f[0], f[1], f[2:]}, nil
		}
	}
	return imagePython{}, nil
}

// link makes the names that are missing resolve.
func (p imagePython) link(ctx context.Context, s env.Sandbox) error {
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
	return s.TarIn(ctx, binPath, &links)
}
