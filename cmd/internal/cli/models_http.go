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

// shutdownTimeout is how long a stopped server waits for running exchanges.
const shutdownTimeout = 10 * time.Second

// serveUntilStopped serves h, such as the replacement of a model server, until the command is
// stopped. It prints the URL, with path, as the only line on standard output. If
// certFile is set, it speaks TLS and writes the certificate that clients must trust to that
// file.
func serveUntilStopped(ctx context.Context, s *State, listen, path, certFile string, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return Usage(fmt.Errorf("listening: %w: name another address with --listen", err))
	}
	scheme := "http://"
	if certFile != "" {
		if l, err = withTLS(l, certFile); err != nil {
			return Usage(err)
		}
		scheme = "https://"
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	fmt.Fprintln(s.Stdout, scheme+l.Addr().String()+path)
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(shutdownCtx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopping the server: %w", err)
	}
	_ = srv.Close()
	<-served
	return nil
}

// withTLS adds TLS to a listener, with a new certificate for this machine's local
// names that is valid for a month, and writes the certificate to a file.
func withTLS(l net.Listener, file string) (net.Listener, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(l.Addr().String()); err == nil {
		hosts = append(hosts, host)
	}
	cert, pem, err := mock.Certificate(time.Now().AddDate(0, 1, 0), hosts...)
	if err == nil {
		err = os.WriteFile(file, pem, 0o644)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a certificate: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
}
