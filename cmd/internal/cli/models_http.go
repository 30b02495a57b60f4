package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tracesmith/tracesmith/llms/mock"
)

// graceful is how long a stopped server waits for running exchanges.
const graceful = 10 * time.Second

// serveModels serves h in place of a model server until the command is stopped. Its
// base URL, with path, is the only line on standard output. If trust is set, it speaks
// TLS and writes the certificate that clients must trust to that file.
func serveModels(ctx context.Context, s *State, listen, path, trust string, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return Usage(fmt.Errorf("listening: %w: name another address with --listen", err))
	}
	scheme := "http://"
	if trust != "" {
		if l, err = secured(l, trust); err != nil {
			return Usage(err)
		}
		scheme = "https://"
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	fmt.Fprintln(s.Stdout, scheme+l.Addr().String()+path)
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	if err := web.Shutdown(patience); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopping the server: %w", err)
	}
	_ = web.Close()
	<-ended
	return nil
}

// secured adds TLS to a listener, with a new certificate for this machine's local
// names that is valid for a month, and writes the certificate to a file.
func secured(l net.Listener, file string) (net.Listener, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if at, _, err := net.SplitHostPort(l.Addr().String()); err == nil {
		hosts = append(hosts, at)
	}
	cert, text, err := mock.Certificate(time.Now().AddDate(0, 1, 0), hosts...)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a certificate: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
}
