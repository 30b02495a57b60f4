package engine

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// The node configuration in docs/fleet.md is valid, refuses clients that lack a password or a
// certificate of the cluster's CA, and encrypts the traffic between nodes.
func TestNodeConfigurationInDocumentationIsValid(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Three nodes\n")
	_, block, _ := strings.Cut(section, "```text\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/fleet.md has no text block with the configuration of a node under \"Three nodes\"")
	}
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	cert, key := ca.pair(t, "server", time.Now().Add(24*time.Hour))
	config := strings.NewReplacer("/etc/nats/server.pem", cert, "/etc/nats/server.key", key, "/etc/nats/ca.pem", ca.ca,
		"/var/lib/nats", t.TempDir(), "port: 4222", "port: -1", "port: 6222", "port: -1").Replace(block)
	file := filepath.Join(t.TempDir(), "n1.conf")
	if err := os.WriteFile(file, []byte("host: 127.0.0.1\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACESMITH_PASSWORD", "right-one")
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !opts.SyncAlways || opts.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert || opts.Cluster.TLSConfig == nil || opts.Cluster.Name == "" || len(opts.Routes) != 2 {
		t.Errorf("sync %v, asks for certificates %v, routes %v with TLS %v", opts.SyncAlways, opts.TLSConfig.ClientAuth, opts.Routes, opts.Cluster.TLSConfig != nil)
	}
	opts.Cluster, opts.Routes = server.ClusterOpts{}, nil // the other nodes do not run
	opts.TLSTimeout, opts.NoSigs, opts.NoLog = 60, true, true
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(3 * time.Minute) {
		t.Fatal("the NATS server did not start")
	}
	workerCert, workerKey := ca.pair(t, "worker", time.Now().Add(24*time.Hour))
	foreign, foreignKey := other.pair(t, "foreign", time.Now().Add(24*time.Hour))
	at := func(user string) string {
		return fmt.Sprintf("nats://%s127.0.0.1:%d", user, srv.Addr().(*net.TCPAddr).Port)
	}
	conn, err := Dial(t.Context(), Cluster{URL: at("tracesmith:right-one@"), CA: ca.ca, Cert: workerCert, Key: workerKey})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for name, c := range map[string]Cluster{
		"no password":    {URL: at(""), CA: ca.ca, Cert: workerCert, Key: workerKey},
		"no certificate": {URL: at("tracesmith:right-one@"), CA: ca.ca},
		"foreign cert":   {URL: at("tracesmith:right-one@"), CA: ca.ca, Cert: foreign, Key: foreignKey},
	} {
		c.Patience = time.Hour
		if _, err := Dial(t.Context(), c); err == nil {
			t.Errorf("%s: the server accepted the connection", name)
		}
	}
}
