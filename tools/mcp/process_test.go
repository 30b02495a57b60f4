package mcp

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/tools"
)

// A process that was killed between two calls is replaced during the next call.
func TestUnsentCallGoesToANewProcess(t *testing.T) {
	s, err := Open(t.Context(), []Config{program(t, "ordinary")}, deps(newWarnings()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set, err := tools.NewSet(s.Tools())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p := s.clients[0].conn.link.(*process)
		if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-p.ended
		if o := call(t, set, session(), "srv__count", `{}`); o.Text != "1" {
			t.Errorf("%+v", o)
		}
	}
}

// An answer that exceeds the limit breaks only the connection.
func TestHugeAnswers(t *testing.T) {
	set := open(t, newWarnings(), program(t, "ordinary"))
	o := call(t, set, session(), "srv__big", `{"bytes":18000000}`)
	if !o.IsError || !strings.Contains(o.Text, "not sent again") || len(o.Text) > 1000 {
		t.Errorf("%+v", o)
	}
	if o := call(t, set, session(), "srv__add", `{"a":1,"b":1}`); o.Text != "2" {
		t.Errorf("the next call: %+v", o)
	}
}

// A process gets only the configured environment, and its child processes end with it.
func TestProcessEnvironmentAndChildren(t *testing.T) {
	t.Setenv("TRACESMITH_TEST_SECRET", "hunter2")
	pids := filepath.Join(t.TempDir(), "pid")
	cfg := program(t, "child", pids)
	cfg.Env = map[string]string{"TOKEN": "env:TRACESMITH_TEST_SECRET"}
	s, err := Open(t.Context(), []Config{cfg}, deps(newWarnings()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(s.Tools())
	if err != nil {
		t.Fatal(err)
	}
	o := call(t, set, session(), "srv__environment", `{}`)
	for line := range strings.Lines(o.Text) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "TOKEN"}, name) {
			t.Errorf("the environment contains %s", line)
		}
	}
	if !strings.Contains(o.Text, "TOKEN=hunter2") {
		t.Errorf("the environment contains %s", o.Text)
	}
	s.Close()
	pid, err := strconv.Atoi(read(pids))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // another process reaps the orphan
		stat := read("/proc/" + strconv.Itoa(pid) + "/stat")
		return stat == "" || strings.Contains(stat, ") Z ")
	})
	cfg.Env = map[string]string{"TOKEN": "env:TRACESMITH_TEST_NOT_SET"}
	if _, err := Open(t.Context(), []Config{cfg}, deps(newWarnings())); !errors.Is(err, ErrNoVariable) || !strings.Contains(err.Error(), "TRACESMITH_TEST_NOT_SET") {
		t.Errorf("%v", err)
	}
}

// A call to a server that stops reading ends at its limit, and the server is replaced.
func TestServersThatStopReading(t *testing.T) {
	s, err := Open(t.Context(), []Config{program(t, "ordinary")}, deps(newWarnings()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set, err := tools.NewSet(s.Tools())
	if err != nil {
		t.Fatal(err)
	}
	p := s.clients[0].conn.link.(*process)
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(map[string]any{"a": 1, "b": 2, "more": strings.Repeat("x", 1<<20)})
	brief := session()
	brief.CommandTimeout = time.Second
	if o := call(t, set, brief, "srv__add", string(args)); !o.TimedOut {
		t.Errorf("%+v", o)
	}
	if o := call(t, set, session(), "srv__add", `{"a":1,"b":1}`); o.Text != "2" {
		t.Errorf("the next call: %+v", o)
	}
}
