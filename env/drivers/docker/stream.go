package docker

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// attachedStream is the stream to a container's first process. The daemon multiplexes standard output and standard
// error; Read returns only standard output.
type attachedStream struct {
	net.Conn
	out    *io.PipeReader
	stderr drivers.Tail
	done   chan struct{}
	once   sync.Once
}

func attach(ctx context.Context, cli *client.Client, id string) (*attachedStream, error) {
	h, err := cli.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	a := &attachedStream{Conn: h.Conn, out: r, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		_, err := stdcopy.StdCopy(w, &a.stderr, h.Reader)
		w.CloseWithError(err) // nil is EOF
	}()
	return a, nil
}

func (a *attachedStream) Read(p []byte) (int, error) { return a.out.Read(p) }

func (a *attachedStream) Close() error {
	var err error
	a.once.Do(func() {
		err = a.Conn.Close()
		_ = a.out.Close()
	})
	return err
}

// wait waits until the copying goroutine ends. Call Close first.
func (a *attachedStream) wait() { <-a.done }
