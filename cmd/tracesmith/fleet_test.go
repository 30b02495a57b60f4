package main

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"
)

// startNATS implements "nats VAR": it starts a NATS server on loopback, which runs until the script
// ends, and stores its URL in VAR.
func startNATS(ts *testscript.TestScript, _ bool, args []string) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: ts.MkAbs("nats")})
	ts.Check(err)
	srv.Start()
	ts.Defer(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(60 * time.Second) {
		ts.Fatalf("the NATS server does not start")
	}
	ts.Setenv(args[0], srv.ClientURL())
}
