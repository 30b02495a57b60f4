package middle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// cached answers a question that was answered before from a directory: one file
// for each, found by the hash of provider, model, request and attempt, so that
// several samples of one task stay different. What it holds is as private as the
// conversations; only the owner may read it. Safe for many workers, and for many
// processes: a file is complete or not there.
type cached struct {
	llms.Client
	dir  string
	note func(string)

	mu   sync.Mutex
	busy map[string]chan struct{} // questions under way, closed at their end
}

// maxEntry bounds what is read of a file, in bytes.
const maxEntry = 64 << 20

// entry is a file of the cache.
type entry struct {
	Version int           `json:"version"`
	Key     string        `json:"key"`
	Reply   schemas.Reply `json:"reply"`
}

const entryVersion = 1

// Chat asks at most once for all that ask the same at the same time. A reply
// from the cache has cost nothing and took no call; its usage is what it took
// when it was made.
func (c *cached) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	account := llms.AccountOf(ctx)
	key, err := c.key(r, account.Attempt())
	if err != nil {
		return llms.Response{}, err
	}
	leave, err := c.enter(ctx, key)
	if err != nil {
		return llms.Response{}, err
	}
	defer leave()
	if reply, ok := c.load(key); ok {
		account.FromCache()
		reply.FromCache, reply.CostUSD, reply.LLMMillis, reply.LLMCalls, reply.Retries = true, new(0.0), new(int64(0)), 0, 0
		return llms.Response{Reply: reply}, nil
	}
	resp, err := c.Client.Chat(ctx, r)
	if err == nil {
		if err := c.store(key, resp.Reply); err != nil {
			c.note(fmt.Sprintf("a reply could not be cached: %v", err))
		}
	}
	return resp, err
}

// key names a question. The session is not part of it: it only says where a
// server may have the beginning of the prompt.
func (c *cached) key(r llms.Request, attempt int) (string, error) {
	r.SessionID = ""
	raw, err := schemas.CanonicalJSON(map[string]any{"provider": c.Provider(), "model": c.Model(), "request": r, "attempt": attempt})
	if err != nil {
		return "", fmt.Errorf("naming a question: %w", err)
	}
	return schemas.HashBytes(raw), nil
}

// enter waits until nobody else is asking the same.
func (c *cached) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		c.mu.Lock()
		other, taken := c.busy[key]
		if !taken {
			mine := make(chan struct{})
			c.busy[key] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.busy, key)
				c.mu.Unlock()
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another's answer: %w", context.Cause(ctx))
		}
	}
}

func (c *cached) file(key string) string { return filepath.Join(c.dir, key[:2], key+".json") }

// load reads an entry; a broken one is as good as none, and said to be so.
func (c *cached) load(key string) (schemas.Reply, bool) {
	f, err := os.Open(c.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return schemas.Reply{}, false
	}
	var e entry
	if err == nil {
		defer f.Close()
		err = json.NewDecoder(io.LimitReader(f, maxEntry)).Decode(&e)
	}
	if err == nil && (e.Version != entryVersion || e.Key != key) {
		err = errors.New("it is of another version, or another question's")
	}
	if err != nil {
		c.note(fmt.Sprintf("the cached reply %s is of no use and was asked for again: %v", c.file(key), err))
		return schemas.Reply{}, false
	}
	return e.Reply, true
}

// store writes an entry atomically.
func (c *cached) store(key string, reply schemas.Reply) error {
	raw, err := json.Marshal(entry{entryVersion, key, reply})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file(key)), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(c.file(key), raw, 0o600, renameio.WithTempDir(filepath.Dir(c.file(key))))
}
