package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

const fleetConfig = `version: 1
run: {name: fleet}
tasks: {source: path, with: {path: REPO, instance_id: shop, entrypoint: python3 -m pytest -q, instructions: Fix it.}}
agent: {kind: react, prompts: {system: SYSTEM}}
llm: {model: m, base_url: "http://127.0.0.1:1/v1", price: {free: true}}
`

// cluster starts a server on loopback and returns a connection to it.
func cluster(t *testing.T) (string, *engine.Conn) {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(60 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	conn, err := Dial(t.Context(), configs.NATS{URL: srv.ClientURL()}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return srv.ClientURL(), conn
}

// refusedWorker starts a worker that the run must refuse, and returns the error message.
func refusedWorker(t *testing.T, conn *engine.Conn, runID, version string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := NewWorker(conn, WorkerOptions{
		RunID: runID, Slots: 1, Patience: time.Minute, Version: version, Host: Host{Getenv: func(string) string { return "" }, Warn: io.Discard}, Progress: io.Discard,
	})
	err := w.Serve(ctx)
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 2 || stop.Remedy == "" || strings.Contains(stop.Error(), "\n") {
		t.Fatalf("not refused with one message: %v", err)
	}
	workers, err := conn.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range workers {
		if e.ID == w.self.ID && (e.State != "refused" || e.Reason != stop.Error()) {
			t.Errorf("in the registry: %s, %q", e.State, e.Reason)
		}
	}
	return stop.Error()
}

// A worker of another version, or on a machine where the configuration means other tasks
// or prompts, takes no job and says why.
func TestWorkersOfAnotherRunAreRefused(t *testing.T) {
	_, conn := cluster(t)
	dir := t.TempDir()
	system, source := filepath.Join(dir, "system.tmpl"), filepath.Join(dir, "repo", "shop.py")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(system, "Be brief.\n")
	write(source, "price = 1\n")
	text := strings.NewReplacer("REPO", filepath.Dir(source), "SYSTEM", system).Replace(fleetConfig)
	cfg, err := configs.Load(configs.Input{Sources: []configs.Source{{Name: "fleet.yaml", Data: []byte(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Run.Dir = filepath.Join(dir, "run")
	run, err := NewRun(t.Context(), cfg, RunOptions{Cluster: conn, Producer: "1.2.3", Getenv: func(string) string { return "" }, Progress: io.Discard, Warn: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := run.Execute(ctx)
		done <- err
	}()
	parts, _, err := run.parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(version string) string { return refusedWorker(t, conn, parts.RunID, version) }
	protocol := fmt.Sprintf("(protocol %d)", engine.Protocol)
	if message := refuse("1.2.4"); !strings.Contains(message, "coordinated by tracesmith 1.2.3 "+protocol+", and this worker is 1.2.4 "+protocol) {
		t.Error(message)
	}
	write(source, "price = 2\n")
	if message := refuse("1.2.3"); !strings.Contains(message, "is a different run on this machine: tasks differ") {
		t.Error(message)
	}
	write(source, "price = 1\n")
	write(system, "Take your time.\n")
	if message := refuse("1.2.3"); !strings.Contains(message, "is a different run on this machine: prompts differ") {
		t.Error(message)
	}
	if err := os.Remove(system); err != nil {
		t.Fatal(err)
	}
	if message := refuse("1.2.3"); !strings.Contains(message, "this machine cannot take part") || !strings.Contains(message, system) {
		t.Error(message)
	}
	stop()
	if err := <-done; err == nil {
		t.Error("the run completed without a worker")
	}
}

func TestAWorkerOfAnotherProtocolIsRefused(t *testing.T) {
	url, conn := cluster(t)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := js.KeyValue(t.Context(), "TRACESMITH_RUNS")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.PutString(t.Context(), "r1", `{"run_id":"r1","phase":"working","version":"1.2.3","protocol":99}`); err != nil {
		t.Fatal(err)
	}
	if message := refusedWorker(t, conn, "r1", "1.2.3"); !strings.Contains(message, "(protocol 99)") {
		t.Error(message)
	}
}
