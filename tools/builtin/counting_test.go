package builtin

import (
	"context"
	"io"

	"github.com/tracesmith/tracesmith/env"
)

// countingSandbox counts the requests to a sandbox.
type countingSandbox struct {
	env.Sandbox
	calls     int   // of any kind
	processes int   // started
	read      int64 // bytes read by searches
	moved     int64 // bytes of files that left or entered the sandbox
}

func (c *countingSandbox) Run(ctx context.Context, cmd env.Command) (env.Result, error) {
	c.calls++
	c.processes++
	return c.Sandbox.Run(ctx, cmd)
}

func (c *countingSandbox) Open(ctx context.Context, t env.TerminalSpec) (env.Terminal, error) {
	c.calls++
	c.processes++
	return c.Sandbox.Open(ctx, t)
}

func (c *countingSandbox) ReadFile(ctx context.Context, path string, limit int64) ([]byte, int64, error) {
	c.calls++
	data, total, err := c.Sandbox.ReadFile(ctx, path, limit)
	c.moved += int64(len(data))
	return data, total, err
}

func (c *countingSandbox) WriteFile(ctx context.Context, path string, data []byte, mode uint32) error {
	c.calls++
	c.moved += int64(len(data))
	return c.Sandbox.WriteFile(ctx, path, data, mode)
}

func (c *countingSandbox) Stat(ctx context.Context, path string) (env.FileInfo, error) {
	c.calls++
	return c.Sandbox.Stat(ctx, path)
}

func (c *countingSandbox) Walk(ctx context.Context, w env.WalkSpec) (env.WalkResult, error) {
	c.calls++
	return c.Sandbox.Walk(ctx, w)
}

func (c *countingSandbox) Search(ctx context.Context, q env.SearchSpec) (env.SearchResult, error) {
	c.calls++
	r, err := c.Sandbox.Search(ctx, q)
	c.read += r.Bytes
	for _, l := range r.Lines {
		c.moved += int64(len(l.Text))
	}
	return r, err
}

func (c *countingSandbox) TarIn(ctx context.Context, dir string, r io.Reader) error {
	c.calls++
	return c.Sandbox.TarIn(ctx, dir, r)
}
