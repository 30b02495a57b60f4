package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bareCosts are costs without tracesmith: medians in milliseconds, nil if they cannot be
// measured on this machine.
type bareCosts struct {
	start   *float64 // bwrap or a container that runs `true`
	program *float64 // bash -c true
	pdb     *float64 // p 1 over a pipe
}

// measureBare measures the costs without tracesmith. It must run while a sandbox of the kind
// exists, so that the page cache holds the files that both need.
func measureBare(ctx context.Context, kind string, rounds int) (bareCosts, error) {
	var b bareCosts
	var err error
	switch kind {
	case "bubblewrap":
		b.start = medianOf(max(2, rounds/5), func() error {
			return exec.CommandContext(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true").Run()
		})
	case "docker":
		b.start = medianOf(max(2, rounds/5), func() error { return bareContainer(ctx) })
	}
	b.program = medianOf(rounds, func() error { return exec.CommandContext(ctx, "bash", "-c", "true").Run() })
	b.pdb, err = barePdb(ctx, rounds)
	return b, err
}

// medianOf runs f once for warm-up, then n times, and returns the median time in
// milliseconds; nil if f fails.
func medianOf(n int, f func() error) *float64 {
	var all []float64
	for i := range n + 1 {
		start := time.Now()
		if f() != nil {
			return nil
		}
		if i > 0 {
			all = append(all, milliseconds(time.Since(start)))
		}
	}
	m := quantile(all, 0.5)
	return &m
}

// barePdb returns the median time in milliseconds of a p command to pdb over a pipe; nil if
// pdb cannot be started.
func barePdb(ctx context.Context, rounds int) (*float64, error) {
	dir, err := os.MkdirTemp("", "tracesmith-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a scratch directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := dir + "/program.py"
	if err := os.WriteFile(program, []byte("x = 1\ny = 2\n"), 0o600); err != nil {
		return nil, fmt.Errorf("writing a program: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-u", "-m", "pdb", program)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		return nil, nil
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	r := bufio.NewReader(out)
	readToPrompt := func() error {
		for output := []byte{}; !bytes.HasSuffix(output, []byte("(Pdb) ")); {
			c, err := r.ReadByte()
			if err != nil {
				return err
			}
			output = append(output, c)
		}
		return nil
	}
	if readToPrompt() != nil {
		return nil, nil
	}
	return medianOf(rounds, func() error {
		if _, err := io.WriteString(in, "p 1\n"); err != nil {
			return err
		}
		return readToPrompt()
	}), nil
}

// bareContainer creates and starts a container of the base image through the daemon's
// API. The daemon removes the container when it has ended.
func bareContainer(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", "/var/run/docker.sock")
	}}}
	defer client.CloseIdleConnections()
	do := func(method, path, body string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var doc struct{ ID string }
		raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err == nil && resp.StatusCode >= 300 {
			err = fmt.Errorf("the daemon answers %s", resp.Status)
		}
		_ = json.Unmarshal(raw, &doc)
		return doc.ID, err
	}
	id, err := do("POST", "/containers/create", `{"Image":"tracesmith-base:latest","Cmd":["true"],"HostConfig":{"NetworkMode":"none","AutoRemove":true}}`)
	if err != nil {
		return err
	}
	_, err = do("POST", "/containers/"+id+"/start", "")
	return err
}

// machine describes the machine of a measurement, so that readers can judge the figures.
type machine struct {
	Cores  int    `json:"cores"`
	CPU    string `json:"cpu"`
	Kernel string `json:"kernel"`
	Memory int64  `json:"memory_bytes"`
	Go     string `json:"go"`
	// Load is the load average over a minute, before and after the measurement.
	Load [2]string `json:"load"`
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	raw, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(raw), "model name\t: "); ok {
		m.CPU, _, _ = strings.Cut(rest, "\n")
	}
	return m
}

// load returns the load average over a minute; "" if it is unknown.
func load() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(raw), " ")
	return first
}

func (m machine) String() string {
	return fmt.Sprintf("%d cores (%s), %s,\nLinux %s, %s; load %s before, %s after", m.Cores, m.CPU, gib(m.Memory), m.Kernel, m.Go, m.Load[0], m.Load[1])
}
