package docker

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// needDocker skips the test unless the Docker suite is enabled, and returns a client of the daemon.
func needDocker(t testing.TB) *client.Client {
	t.Helper()
	suite.Docker.Require(t)
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

// containerOf returns the container of the sandbox with a label.
func containerOf(t *testing.T, cli *client.Client, label string) container.InspectResponse {
	t.Helper()
	list, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Labels[labelName] == label {
			found, err := cli.ContainerInspect(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("no container has the label %q", label)
	return container.InspectResponse{}
}

func TestDocker(t *testing.T) {
	cli := needDocker(t)
	envtest.Run(t, envtest.Suite{Driver: envtest.Driver(t, "docker"), Isolated: true, Remove: func(t *testing.T, label string) {
		err := cli.ContainerRemove(t.Context(), containerOf(t, cli, label).ID, container.RemoveOptions{Force: true})
		if err != nil {
			t.Error(err)
		}
	}})
}

// The settings determine the image, limits, labels, environment, user and mounts.
func TestDockerSettings(t *testing.T) {
	cli := needDocker(t)
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("shown\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := envtest.Build(t, "docker", map[string]any{
		"image": small(t, cli), "name_prefix": "mine-", "labels": map[string]any{"team": "a"}, "env": map[string]any{"FROM_SETTINGS": "1"},
		"user": "1234:4321", "tmpfs": map[string]any{"/tmp": 1 << 20, "/var/spool": 2 << 20}, "runtime": "runc", "platform": "linux/amd64",
		"mounts": []any{map[string]any{"host": host, "path": "/opt/shown"}},
	})
	s := envtest.Start(t, d, env.SandboxSpec{Limits: env.Limits{MemoryBytes: 128 << 20, DiskBytes: 32 << 20, Processes: 40, CPUs: 0.5}})
	got := envtest.Output(t, s, "sh", "-c", `id -u; id -g; echo $FROM_SETTINGS; cat /opt/shown/f; touch /opt/shown/x 2>/dev/null || echo refused
touch /var/spool/x && echo wrote; head -c 3000000 /dev/zero >/tmp/big 2>/dev/null || echo full
cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us`)
	if want := "1234\n4321\n1\nshown\nrefused\nwrote\nfull\n369098752\n146\n50000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c := containerOf(t, cli, t.Name())
	if !strings.HasPrefix(c.Name, "/mine-") || c.Config.Labels["team"] != "a" || c.HostConfig.Runtime != "runc" || c.HostConfig.MemorySwap != c.HostConfig.Memory {
		t.Errorf("name %s, labels %v, runtime %s, swap %d", c.Name, c.Config.Labels, c.HostConfig.Runtime, c.HostConfig.MemorySwap)
	}

	// A negative value lifts a limit, and the key records that.
	s = envtest.Start(t, d, env.SandboxSpec{Label: t.Name() + " unlimited", Limits: env.Limits{MemoryBytes: -1, DiskBytes: -1, Processes: -1, CPUs: -1, CPUTime: -1, OpenFiles: -1}})
	h := containerOf(t, cli, t.Name()+" unlimited").HostConfig
	if h.Memory != 0 || h.NanoCPUs != 0 || h.PidsLimit != nil && *h.PidsLimit > 0 || strings.Contains(h.Tmpfs["/workspace"], "size=") {
		t.Errorf("%+v, %v", h.Resources, h.Tmpfs)
	}
	if u := s.Key().Unenforced; !slices.Equal(u, []string{"cpu_time", "cpus", "disk", "inodes", "memory", "open_files", "processes"}) {
		t.Errorf("recorded as lifted: %v", u)
	}
}

// A container has its owner as a label and is removed with the sandbox.
func TestDockerContainersAreLabeled(t *testing.T) {
	cli := needDocker(t)
	d := envtest.Driver(t, "docker")
	s, err := d.Start(t.Context(), env.SandboxSpec{Label: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, cli, t.Name())
	if o, ok := drivers.ParseOwner(c.Config.Labels[labelOwner]); !ok || o != drivers.Self() || c.Config.Labels[labelMark] == "" {
		t.Errorf("labels %v", c.Config.Labels)
	}
	// This test does not call Reap, because that would remove leftovers that other tests count.
	left, err := d.Leftovers(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, l := range left {
		if strings.HasPrefix(c.ID, l.Name) {
			t.Errorf("the container of a living owner is left over: %+v", l)
		}
	}
	other := envtest.Start(t, d, env.SandboxSpec{Label: t.Name() + " 2"})
	if a, b := c.Name, containerOf(t, cli, t.Name()+" 2").Name; a == b || !strings.HasPrefix(a, "/tracesmith-") {
		t.Errorf("names %s and %s", a, b)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	list, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	for _, l := range list {
		if l.ID == c.ID {
			t.Error("the container still exists")
		}
	}
	if err != nil || envtest.Output(t, other, "echo", "on") != "on\n" {
		t.Errorf("the other sandbox: %v", err)
	}
}

// Programs in the background do not delay the end of a command, even if they keep its output open. An exit code of 124
// is not a timeout.
func TestDockerBackgroundProcessesDoNotDelayCommands(t *testing.T) {
	needDocker(t)
	s := envtest.Sandbox(t, "docker", env.SandboxSpec{})
	for _, script := range []string{"(nohup sleep 50.1 >/dev/null 2>&1 &)", "nohup sleep 50.1 2>/dev/null &"} {
		r, err := s.Run(t.Context(), env.Command{Args: []string{"bash", "-c", script + "\necho on; exit 124"}, Timeout: 40 * time.Second})
		if err != nil || r.TimedOut || r.ExitCode != 124 || string(r.Output) != "on\n" {
			t.Errorf("%s: %+v, %v", script, r, err)
		}
	}
	// The shell may end before its background program has started, so wait for both programs.
	both := "until [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx '50[.]1') = 2 ]; do :; done"
	if r, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", both}, Timeout: 20 * time.Second}); err != nil || r.ExitCode != 0 || r.TimedOut {
		t.Errorf("background programs: %+v, %v", r, err)
	}
	r, err := s.Run(t.Context(), env.Command{Args: []string{"bash", "-c", "trap '' TERM; echo begun; sleep 50.2 & wait; sleep 50.2"}, Timeout: time.Second})
	if err != nil || !r.TimedOut || string(r.Output) != "begun\n" {
		t.Errorf("a program that ignores TERM: %+v, %v", r, err)
	}
	if got := envtest.Output(t, s, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx '50[.]2'; exit 0"); got != "0\n" {
		t.Errorf("processes left after the timeout: %q", got)
	}
}

// The driver checks its settings, names an invalid one in the error, and does not modify the caller's map.
func TestDockerSettingsAreChecked(t *testing.T) {
	with := map[string]any{"image": "x", "env": map[string]any{"A": "1"}, "labels": map[string]any{"a": "b"}}
	before := map[string]any{"image": "x", "env": map[string]any{"A": "1"}, "labels": map[string]any{"a": "b"}}
	d := envtest.Build(t, "docker", with)
	t.Setenv("DOCKER_HOST", "unix:///no/such/socket")
	_, _ = d.Start(t.Context(), env.SandboxSpec{Env: []string{"B=2"}, Mounts: []env.Mount{}})
	if d.(*driver).config.Env["A"] = "changed"; !reflect.DeepEqual(with, before) {
		t.Errorf("the settings became %v", with)
	}
	for want, with := range map[string]map[string]any{
		"known are image, host":       {"imgae": "x"},
		"choose never or if-missing":  {"pull": "always"},
		"0 is refused":                {"user": "0"},
		"names differ between images": {"user": "postgres"},
		"both be absolute":            {"mounts": []any{map[string]any{"host": "relative", "path": "/x"}}},
		"write env:NAME":              {"registry_auth": "me:password"},
		"are reserved":                {"labels": map[string]any{"tracesmith.owner": "x"}},
		"os/arch":                     {"platform": "amd64"},
		"at least 4096 bytes":         {"tmpfs": map[string]any{"tmp": 5}},
		"name of a variable":          {"env": map[string]any{"A=B": "x"}},
	} {
		if _, err := env.Drivers.Build("docker", with, struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", with, err, want)
		}
	}
}

func TestDockerWithoutADaemon(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///no/such/socket")
	_, err := envtest.Driver(t, "docker").Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "start the daemon") {
		t.Errorf("no daemon: %v", err)
	}
}

// A container has no root, no capabilities, no writable system, and no disk without a limit.
func TestDockerContainersAreConfined(t *testing.T) {
	cli := needDocker(t)
	s := envtest.Sandbox(t, "docker", env.SandboxSpec{Limits: env.Limits{DiskBytes: 64 << 20}})
	got := envtest.Output(t, s, "sh", "-c", `id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
for p in / /usr /etc /var /opt /root; do touch $p/x 2>/dev/null && echo wrote $p; done
for p in /workspace /tmp /home/user /dev/shm; do head -c 70M /dev/zero >$p/big 2>/dev/null && echo $p has no limit; rm -f $p/big; done; exit 0`)
	if want := "1000\nCapBnd:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"; sorted(got) != sorted(want) {
		t.Errorf("%q", got)
	}
	h := containerOf(t, cli, t.Name()).HostConfig
	if h.NetworkMode != "none" || h.Privileged || !h.ReadonlyRootfs || h.PidMode != "" || h.IpcMode == "host" || len(h.Binds) > 0 || h.LogConfig.Type != "none" {
		t.Errorf("%+v", h)
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
