package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// graceful is how long exchanges under way have to end by themselves.
const graceful = 10 * time.Second

// serveModels serves a stand-in for a model server until the command is stopped,
// which is how it ends. Its base URL, with path, is the one line on standard
// output.
func serveModels(ctx context.Context, s *State, listen, path string, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return Usage(fmt.Errorf("listening: %w: name another address with --listen", err))
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	fmt.Fprintln(s.Stdout, "http://"+l.Addr().String()+path)
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	if err := web.Shutdown(patience); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending: %w", err)
	}
	_ = web.Close()
	<-ended
	return nil
}
