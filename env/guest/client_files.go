package guest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// ReadFile implements env.Sandbox. It never reads more than 256 MiB.
func (c *Client) ReadFile(ctx context.Context, path string, limit int64) ([]byte, int64, error) {
	limit = min(cmp.Or(max(limit, 0), maxReadFile), maxReadFile)
	data, total, err := c.pull(ctx, &guestpb.PullRequest{Id: c.ids.Add(1), Path: c.guestPath(path), Limit: limit}, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, max(total, int64(len(data))), nil
}

// WriteFile implements env.Sandbox.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte, mode uint32) error {
	req := &guestpb.PushRequest{Id: c.ids.Add(1), Path: c.guestPath(path), Mode: mode & 0o777}
	if err := c.push(ctx, req, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Stat implements env.Sandbox.
func (c *Client) Stat(ctx context.Context, path string) (env.FileInfo, error) {
	r, err := call(ctx, c, shortTimeout, c.svc.Stat, &guestpb.StatRequest{Path: c.guestPath(path)})
	if err != nil {
		return env.FileInfo{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	return env.FileInfo{
		Size: max(r.Size, 0), Mode: r.Mode & 0o777, IsDir: r.IsDir,
		Symlink: string(r.Symlink), Real: c.callerPath(string(r.Real)),
	}, nil
}

// TarIn implements env.Sandbox.
func (c *Client) TarIn(ctx context.Context, dir string, r io.Reader) error {
	id := c.ids.Add(1)
	in := bufio.NewReaderSize(r, pieceBytes)
	for {
		// Peek, because the piece must say whether it is the last one.
		data, err := in.Peek(pieceBytes)
		if err != nil && err != io.EOF {
			c.drop(ctx, id)
			return fmt.Errorf("reading the archive: %w", err)
		}
		req := &guestpb.PushRequest{
			Id: id, Kind: guestpb.Kind_ARCHIVE, Path: c.guestPath(dir), Data: data, Last: err == io.EOF,
		}
		if _, err := call(ctx, c, fileTimeout, c.svc.Push, req); err != nil {
			c.drop(ctx, id)
			return fmt.Errorf("unpacking into %s: %w", dir, err)
		}
		if req.Last {
			return nil
		}
		if _, err := in.Discard(len(data)); err != nil {
			return err
		}
	}
}

// TarOut implements env.Sandbox. It refuses an archive much larger than the sandbox's disk,
// because sparse files can claim any size.
func (c *Client) TarOut(ctx context.Context, dir string, w io.Writer) error {
	maxBytes := int64(math.MaxInt64)
	if disk := cmp.Or(c.config.Limits.DiskBytes, env.DefaultLimits.DiskBytes); disk > 0 {
		maxBytes = 2*disk + 64<<20
	}
	req := &guestpb.PullRequest{Id: c.ids.Add(1), Kind: guestpb.Kind_ARCHIVE, Path: c.guestPath(dir)}
	for received := int64(0); ; {
		r, err := call(ctx, c, fileTimeout, c.svc.Pull, req)
		if err != nil {
			c.drop(ctx, req.Id)
			return fmt.Errorf("archiving %s: %w", dir, err)
		}
		received += int64(len(r.Data))
		if received > maxBytes {
			err = fmt.Errorf("%w: more than %d bytes", env.ErrRefused, maxBytes)
		} else {
			_, err = w.Write(r.Data)
		}
		if err != nil {
			c.drop(ctx, req.Id)
			return fmt.Errorf("archiving %s: %w", dir, err)
		}
		if r.Eof {
			return nil
		}
	}
}

// push sends data in pieces.
func (c *Client) push(ctx context.Context, req *guestpb.PushRequest, data []byte) error {
	for {
		n := min(len(data), pieceBytes)
		req.Data, data = data[:n], data[n:]
		req.Last = len(data) == 0
		if _, err := call(ctx, c, fileTimeout, c.svc.Push, req); err != nil {
			c.drop(ctx, req.Id)
			return err
		}
		if req.Last {
			return nil
		}
	}
}

// pull fetches a whole transfer of at most limit bytes.
func (c *Client) pull(ctx context.Context, req *guestpb.PullRequest, limit int64) (data []byte, total int64, err error) {
	for {
		r, err := call(ctx, c, fileTimeout, c.svc.Pull, req)
		if err != nil {
			c.drop(ctx, req.Id)
			return nil, 0, err
		}
		if int64(len(data)+len(r.Data)) > limit || len(r.Data) == 0 && !r.Eof {
			return nil, 0, c.die("impossible lengths in a transfer")
		}
		data, total = append(data, r.Data...), r.Total
		if r.Eof {
			return data, total, nil
		}
	}
}

// drop abandons a transfer after a failure. It ignores errors.
func (c *Client) drop(ctx context.Context, id uint64) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	_, _ = call(late, c, cancelTimeout, c.svc.Drop, &guestpb.DropRequest{Id: id})
}
