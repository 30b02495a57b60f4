package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// This file defines the commands with which scripts start, call and stop a server.

// serverSet holds the servers that scripts have started, by script and name.
type serverSet struct {
	mu       sync.Mutex
	programs map[string]*program
}

// program is a running server.
type program struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

var servers serverSet

// serve implements "serve VAR ARGS...": it starts tracesmith ARGS, which runs until the script ends
// or quits it, and stores the first line of its standard output in VAR.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	p := &program{cmd: exec.Command("tracesmith", args[1:]...)}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = append(p.cmd.Environ(), "HOME="+ts.Getenv("HOME"))
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	ts.Defer(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait()
		ts.Fatalf("tracesmith %s: %v\n%s", strings.Join(args[1:], " "), err, p.stderr.String())
	}
	ts.Setenv(args[0], strings.TrimSpace(line))
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if servers.programs == nil {
		servers.programs = map[string]*program{}
	}
	servers.programs[ts.Name()+args[0]] = p
}

// quit implements "quit VAR SIGNAL CODE": it sends the signal to the program that serve started with
// VAR, which must end with that exit code (-1 if it is killed). The program's standard error becomes
// the script's last one.
func quit(ts *testscript.TestScript, _ bool, args []string) {
	servers.mu.Lock()
	p := servers.programs[ts.Name()+args[0]]
	servers.mu.Unlock()
	ts.Check(p.cmd.Process.Signal(map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]))
	_ = p.cmd.Wait() // the exit code is checked below
	_, err := io.WriteString(ts.Stderr(), p.stderr.String())
	ts.Check(err)
	if got := strconv.Itoa(p.cmd.ProcessState.ExitCode()); got != args[2] {
		ts.Fatalf("exit code %s, want %s\n%s", got, args[2], p.stderr.String())
	}
}

// ask implements "ask STATUS URL [FILE [SESSION [KEY]]]": it sends one request, a POST if FILE is
// given, whose response must have that status. The body becomes the script's last standard output.
func ask(ts *testscript.TestScript, _ bool, args []string) {
	args = append(args, "", "", "")[:5]
	method, body := http.MethodGet, ""
	if args[2] != "" {
		method, body = http.MethodPost, ts.ReadFile(args[2])
	}
	req, err := http.NewRequest(method, args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if args[3] != "" {
		req.Header.Set("X-Session-ID", args[3])
	}
	if args[4] != "" {
		req.Header.Set("Authorization", "Bearer "+args[4])
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
}

// hang implements "hang URL FILE SESSION": it sends a POST and does not read the body of the response
// before the script ends.
func hang(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodPost, args[0], strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	req.Header.Set("X-Session-ID", args[2])
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	ts.Check(err)
	ts.Defer(func() { _ = resp.Body.Close() })
}
