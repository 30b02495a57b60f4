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

// cacheClient answers repeated requests from a directory with one file per request. The key
// is a hash of provider, model, request and attempt, so that two attempts at a task do not
// get the same replies. Only the owner can read the files, because they are as private as the
// conversations. Several goroutines and processes may share the directory: files are
// written atomically.
type cacheClient struct {
	llms.Client
	dir  string
	note func(string) // reports a problem

	mu      sync.Mutex
	running map[string]chan struct{} // by key of the request; closed when the request ends
}

// maxEntry is the maximum size of an entry in bytes.
const maxEntry = 64 << 20

// entry is the content of a file of the cache.
type entry struct {
	Version int           `json:"version"`
	Key     string        `json:"key"`
	Reply   schemas.Reply `json:"reply"`
}

const entryVersion = 1

// Chat makes at most one call for equal concurrent requests. A reply from the cache costs
// nothing and has no calls; its usage is that of the original call.
func (c *cacheClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	account := llms.AccountOf(ctx)
	key, err := c.key(r, account.Attempt())
	if err != nil {
		return llms.Response{}, err
	}
	release, err := c.acquire(ctx, key)
	if err != nil {
		return llms.Response{}, err
	}
	defer release()
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

// key returns the key of a request. The session is not part of it, because it does not
// affect the reply.
func (c *cacheClient) key(r llms.Request, attempt int) (string, error) {
	r.SessionID = ""
	raw, err := schemas.CanonicalJSON(map[string]any{"provider": c.Provider(), "model": c.Model(), "request": r, "attempt": attempt})
	if err != nil {
		return "", fmt.Errorf("encoding a request for the cache: %w", err)
	}
	return schemas.HashBytes(raw), nil
}

// acquire waits until no equal request is running and marks the key as running. The caller
// must call release.
func (c *cacheClient) acquire(ctx context.Context, key string) (release func(), err error) {
	for {
		c.mu.Lock()
		other, found := c.running[key]
		if !found {
			done := make(chan struct{})
			c.running[key] = done
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.running, key)
				c.mu.Unlock()
				close(done)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the answer to an equal request: %w", context.Cause(ctx))
		}
	}
}

func (c *cacheClient) file(key string) string { return filepath.Join(c.dir, key[:2], key+".json") }

// load reads an entry. If the entry is damaged, load calls note and returns false.
func (c *cacheClient) load(key string) (schemas.Reply, bool) {
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
		err = errors.New("it has another version, or belongs to another request")
	}
	if err != nil {
		c.note(fmt.Sprintf("the cached reply %s cannot be used and was requested again: %v", c.file(key), err))
		return schemas.Reply{}, false
	}
	return e.Reply, true
}

// store writes an entry atomically.
func (c *cacheClient) store(key string, reply schemas.Reply) error {
	raw, err := json.Marshal(entry{entryVersion, key, reply})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file(key)), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(c.file(key), raw, 0o600, renameio.WithTempDir(filepath.Dir(c.file(key))))
}
