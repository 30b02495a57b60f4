package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Node is one server of a cluster on the loopback interface, for experiments. For
// real runs, set up a cluster with nats-server.
type Node struct {
	Name  string
	Dir   string // of its store
	Port  int    // for clients
	Route int    // port for the other nodes
	Peers []int  // Route of each other node
}

// Serve runs the node, with synchronous writes, until ctx ends.
func (n Node) Serve(ctx context.Context) error {
	opts := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: n.Dir, SyncAlways: true, SyncInterval: 2 * time.Minute, // SyncInterval is the server's default
		Cluster: server.ClusterOpts{Name: "tracesmith", Host: "127.0.0.1", Port: n.Route},
	}
	for _, port := range n.Peers {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("starting a node: %w", err)
	}
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	srv.Start()
	if !srv.ReadyForConnections(30 * time.Second) {
		return errors.New("starting a node: it does not listen; its ports may be in use")
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
