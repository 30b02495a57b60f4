package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// busybox returns a static program that contains the usual commands, for images without a C library, bash and Python.
func busybox(t *testing.T) []byte {
	t.Helper()
	name, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatalf("%v: install busybox-static", err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ldd", name).CombinedOutput(); err == nil {
		t.Fatalf("busybox is not static (install busybox-static): %s", out)
	}
	return raw
}

// makeImage imports an image with a few files, and removes it at the end of the test. The content "-> target" means a
// symlink, and a name that ends with a slash means a directory, which every user may write to if its content is "open".
func makeImage(t *testing.T, cli *client.Client, files map[string]string, changes ...string) string {
	t.Helper()
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	for name, content := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, content = tar.TypeSymlink, target, 0, ""
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
			if content == "open" {
				h.Mode = 0o777
			}
			content = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := "tracesmith-test-" + drivers.RandomName() + ":latest"
	r, err := cli.ImageImport(t.Context(), imagetypes.ImportSource{Source: &root, SourceName: "-"}, name, imagetypes.ImportOptions{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(r); err != nil || bytes.Contains(said, []byte(`"error"`)) {
		t.Fatalf("importing: %v, %s", err, said)
	}
	_ = r.Close()
	t.Cleanup(func() { // the test's context has ended
		_ = exec.Command("docker", "-H", cli.DaemonHost(), "image", "rm", "-f", name).Run()
	})
	return name
}

// loadForeign loads an empty image for the architecture s390x.
func loadForeign(t *testing.T, cli *client.Client) string {
	t.Helper()
	layer := make([]byte, 1024) // an empty archive
	name := "tracesmith-test-" + drivers.RandomName() + ":latest"
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for file, content := range map[string]string{
		"layer.tar":     string(layer),
		"config.json":   fmt.Sprintf(`{"os":"linux","architecture":"s390x","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer)),
		"manifest.json": fmt.Sprintf(`[{"Config":"config.json","RepoTags":[%q],"Layers":["layer.tar"]}]`, name),
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := cli.ImageLoad(t.Context(), &all)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(r.Body); err != nil || !bytes.Contains(said, []byte("Loaded")) {
		t.Fatalf("loading: %v, %s", err, said)
	}
	_ = r.Body.Close()
	t.Cleanup(func() { _ = exec.Command("docker", "-H", cli.DaemonHost(), "image", "rm", "-f", name).Run() })
	return name
}

// small creates an image with only sh and a few programs.
func small(t *testing.T, cli *client.Client, changes ...string) string {
	t.Helper()
	files := map[string]string{"bin/": "", "bin/busybox": string(busybox(t))}
	for _, name := range []string{"sh", "cat", "ls", "id", "touch", "echo", "sleep", "pwd", "env", "true", "stat", "head", "test", "mkdir", "wc", "tr"} {
		files["bin/"+name] = "-> busybox"
	}
	return makeImage(t, cli, files, changes...)
}

// worksWithoutPrograms calls the methods that need no program of the image.
func worksWithoutPrograms(t *testing.T, s env.Sandbox) {
	t.Helper()
	if err := s.WriteFile(t.Context(), "sub/a.txt", []byte("a\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.ReadFile(t.Context(), "sub/a.txt", 10); err != nil || string(got) != "a\n" {
		t.Errorf("%q, %v", got, err)
	}
	if fi, err := s.Stat(t.Context(), "sub"); err != nil || !fi.IsDir {
		t.Errorf("%+v, %v", fi, err)
	}
	var out bytes.Buffer
	if err := s.TarOut(t.Context(), ".", &out); err != nil || !bytes.Contains(out.Bytes(), []byte("sub/a.txt")) {
		t.Errorf("%v", err)
	}
}

func TestDockerImageFromScratch(t *testing.T) {
	cli := needDocker(t)
	name := makeImage(t, cli, map[string]string{"empty": ""})
	s := envtest.Sandbox(t, "docker", env.SandboxSpec{Image: name})
	worksWithoutPrograms(t, s)
	r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "true"}})
	if err != nil || r.ExitCode != 127 || string(r.Output) != "sh: command not found\n" {
		t.Errorf("exit %d, %q, %v", r.ExitCode, r.Output, err)
	}
	if _, err := s.Open(t.Context(), env.TerminalSpec{Args: []string{"bash"}}); !errors.Is(err, env.ErrNoProgram) || !strings.Contains(err.Error(), "bash: command not found") {
		t.Errorf("a terminal without its program: %v", err)
	}
	if k := s.Key(); k.Python != "" || k.Image != name || k.ImageDigest == "" {
		t.Errorf("%+v", k)
	}
}

func TestDockerImageWithoutLibraryBashAndPython(t *testing.T) {
	cli := needDocker(t)
	s := envtest.Sandbox(t, "docker", env.SandboxSpec{Image: small(t, cli)})
	worksWithoutPrograms(t, s)
	if got := envtest.Output(t, s, "sh", "-c", "pwd; cat sub/a.txt; echo $HOME; touch /tmp/x ~/y && echo wrote"); got != "/workspace\na\n/home/user\nwrote\n" {
		t.Errorf("%q", got)
	}
	r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "sleep 60 & sleep 60"}, Timeout: 300e6})
	if err != nil || !r.TimedOut {
		t.Errorf("%+v, %v", r, err)
	}
	if got := envtest.Output(t, s, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(got, "sleep 60 ") {
		t.Errorf("processes left after the timeout: %q", got)
	}
}

// The declarations of an image, except ENV, do not affect a sandbox.
func TestDockerImageDeclarations(t *testing.T) {
	cli := needDocker(t)
	files := map[string]string{
		"bin/busybox": string(busybox(t)), "bin/sh": "-> busybox", "bin/id": "-> busybox", "bin/cat": "-> busybox", "bin/touch": "-> busybox", "bin/pwd": "-> busybox",
		"etc/passwd": "daemon:x:1:1:daemon:/:/bin/sh\n", "seed/": "open", "seed/kept": "kept\n", "fresh/": "open", "tmp/": "",
	}
	name := makeImage(t, cli, files, `ENTRYPOINT ["/bin/false"]`, `CMD ["nonsense"]`, "USER daemon", "WORKDIR /elsewhere",
		"HEALTHCHECK --interval=1s CMD /bin/false", "VOLUME /seed", "VOLUME /fresh", "VOLUME /tmp", "VOLUME /workspace",
		"ENV FROM_IMAGE=1 HOME=/nowhere PATH=/bin", "EXPOSE 80")
	s := envtest.Sandbox(t, "docker", env.SandboxSpec{Image: name})
	got := envtest.Output(t, s, "sh", "-c", `id -u; pwd; echo $FROM_IMAGE $HOME; cat /seed/kept
touch /seed/x /fresh/x 2>/dev/null || echo refused; touch /tmp/x ./x && echo wrote`)
	if want := "1000\n/workspace\n1 /home/user\nkept\nrefused\nwrote\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c := containerOf(t, cli, t.Name())
	if c.State.Health != nil || c.Config.StopSignal != "SIGKILL" {
		t.Errorf("health %v, stop signal %s", c.State.Health, c.Config.StopSignal)
	}
}

// The driver refuses an image for another architecture before it starts a container, and the error says why.
func TestDockerImageOfAnotherPlatform(t *testing.T) {
	cli := needDocker(t)
	name := loadForeign(t, cli)
	_, err := envtest.Driver(t, "docker").Start(t.Context(), env.SandboxSpec{Image: name})
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "linux/s390x") || !strings.Contains(err.Error(), "sandbox.with.platform") {
		t.Errorf("%v", err)
	}
}

// An image without python but with python3, or the other way round, gets both.
func TestDockerPythonHasBothNames(t *testing.T) {
	cli := needDocker(t)
	fake := func(version string) string {
		return "#!/bin/sh\necho " + version + "; echo /usr/bin/odd; for n in python python3; do [ -e /usr/bin/$n ] || echo $n; done\n"
	}
	for _, c := range []struct{ has, version string }{{"python", "3.6.15"}, {"python3", "3.13.0"}} {
		name := makeImage(t, cli, map[string]string{
			"bin/busybox": string(busybox(t)), "bin/sh": "-> busybox", "bin/echo": "-> busybox",
			"usr/bin/" + c.has: fake(c.version), "usr/bin/odd": "#!/bin/sh\necho here\n",
		})
		s := envtest.Sandbox(t, "docker", env.SandboxSpec{Image: name, Label: t.Name() + c.has})
		if got := s.Key().Python; got != c.version {
			t.Errorf("python %q", got)
		}
		other := map[string]string{"python": "python3", "python3": "python"}[c.has]
		if got := envtest.Output(t, s, other); got != "here\n" {
			t.Errorf("%s: %q", other, got)
		}
	}
}
