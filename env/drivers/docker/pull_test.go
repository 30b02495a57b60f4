package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	imagetypes "github.com/docker/docker/api/types/image"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// serveImage starts a registry with one image. pulls counts the requests for its manifest.
func serveImage(t *testing.T, user, password string) (address string, pulls *atomic.Int32) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "pulled", Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	digest := func(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }
	config := fmt.Appendf(nil, `{"os":"linux","architecture":"amd64","config":{},"rootfs":{"type":"layers","diff_ids":[%q]}}`, digest(layer.Bytes()))
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":%d,"digest":%q},
"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar","size":%d,"digest":%q}]}`, kind, len(config), digest(config), layer.Len(), digest(layer.Bytes()))
	blobs := map[string][]byte{digest(config): config, digest(layer.Bytes()): layer.Bytes(), digest(manifest): manifest, "latest": manifest}
	pulls = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		blob, ok := blobs[name]
		switch {
		case r.URL.Path == "/v2/":
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			if bytes.Equal(blob, manifest) {
				w.Header().Set("Content-Type", kind)
				pulls.Add(1)
			}
			w.Header().Set("Docker-Content-Digest", digest(blob))
			w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
			_, _ = w.Write(blob)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), pulls
}

// If the settings allow it, the driver pulls a missing image once, with the credentials from the environment. Otherwise
// the error names the command that pulls the image.
func TestDockerMissingImagesArePulledOnce(t *testing.T) {
	cli := needDocker(t)
	address, pulls := serveImage(t, "me", "s3cret")
	name := address + "/" + drivers.RandomName() + ":latest"
	_, err := envtest.Driver(t, "docker").Start(t.Context(), env.SandboxSpec{Image: name})
	if err == nil || !strings.Contains(err.Error(), "docker pull "+name) || pulls.Load() != 0 {
		t.Errorf("%v after %d pulls", err, pulls.Load())
	}
	t.Setenv("REGISTRY", "me:wrong")
	with := map[string]any{"pull": "if-missing", "registry_auth": "env:REGISTRY"}
	if _, err := envtest.Build(t, "docker", with).Start(t.Context(), env.SandboxSpec{Image: name}); err == nil || !strings.Contains(err.Error(), "pulling "+name) {
		t.Errorf("with a wrong password: %v", err)
	}
	t.Setenv("REGISTRY", "me:s3cret")
	d := envtest.Build(t, "docker", with)
	defer func() {
		_, _ = cli.ImageRemove(t.Context(), name, imagetypes.RemoveOptions{Force: true})
	}()
	for i := range 2 {
		s, err := d.Start(t.Context(), env.SandboxSpec{Image: name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "/pulled"); err != nil {
			t.Error(err)
		}
		if k := s.Key(); !strings.Contains(k.ImageDigest, "@sha256:") {
			t.Errorf("digest %q", k.ImageDigest)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := pulls.Load(); i == 1 && n > 2 {
			t.Errorf("%d manifests served", n)
		}
	}
}

// Pull fetches an image before it is used, and reports the progress in bytes. A canceled pull can be repeated.
func TestDockerImagesArePulledAhead(t *testing.T) {
	cli := needDocker(t)
	address, _ := serveImage(t, "", "")
	name := address + "/" + drivers.RandomName() + ":latest"
	d := envtest.Driver(t, "docker").(env.Puller)
	defer func() {
		_, _ = cli.ImageRemove(t.Context(), name, imagetypes.RemoveOptions{Force: true})
	}()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := d.Pull(stopped, name, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled pull: %v", err)
	}
	for i, want := range []bool{true, false} {
		fetched, err := d.Pull(t.Context(), name, func(have, total int64) {
			if have > total {
				t.Errorf("%d of %d bytes", have, total)
			}
		})
		if err != nil || fetched != want {
			t.Errorf("pull %d: fetched %v, %v", i, fetched, err)
		}
	}
	if _, err := d.Pull(t.Context(), address+"/none:1", nil); err == nil || !strings.Contains(err.Error(), "pulling "+address+"/none:1") {
		t.Errorf("a missing image: %v", err)
	}
}

// The setting pulls limits concurrent pulls for sandboxes. A sandbox that waited uses an image that has been pulled
// meanwhile.
func TestDockerConcurrentPullsAreLimited(t *testing.T) {
	cli := needDocker(t)
	address, pulls := serveImage(t, "", "")
	name := address + "/" + drivers.RandomName() + ":latest"
	d := envtest.Build(t, "docker", map[string]any{"pull": "if-missing", "pulls": 1}).(*driver)
	defer func() {
		_, _ = cli.ImageRemove(t.Context(), name, imagetypes.RemoveOptions{Force: true})
	}()
	if err := d.pulls.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Ensure(stopped, name) }()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) || pulls.Load() != 0 {
		t.Errorf("while another pull runs: %v after %d pulls", err, pulls.Load())
	}
	if _, err := d.Pull(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	before := pulls.Load()
	d.pulls.Release(1)
	for range 2 {
		if err := d.Ensure(t.Context(), name); err != nil || pulls.Load() != before {
			t.Errorf("an existing image: %v after %d pulls, %d before", err, pulls.Load(), before)
		}
	}
	if err := d.Ensure(t.Context(), address+"/none:1"); err == nil || !strings.Contains(err.Error(), "pulling "+address+"/none:1") {
		t.Errorf("a missing image: %v", err)
	}
}

func TestDockerPullsAreCountedByLayers(t *testing.T) {
	layers := layerProgress{}
	for _, step := range []struct {
		line        pullLine
		have, total int64
	}{
		{pullLine{ID: "a", Status: "Pulling fs layer"}, 0, 0},
		{pullLine{ID: "a", Status: "Downloading", Progress: layerBytes{10, 100}}, 10, 100},
		{pullLine{ID: "b", Status: "Downloading", Progress: layerBytes{7, 0}}, 17, 107},
		{pullLine{ID: "a", Status: "Download complete"}, 107, 107},
		{pullLine{ID: "b", Status: "Extracting", Progress: layerBytes{1, 50}}, 107, 107},
	} {
		layers.add(step.line)
		if have, total := layers.sum(); have != step.have || total != step.total {
			t.Errorf("%+v: %d of %d, want %d of %d", step.line, have, total, step.have, step.total)
		}
	}
}
