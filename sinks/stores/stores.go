// Package stores holds the places data can go: a directory (file) or an S3
// bucket (s3). Both pass sinktest.RunStore. It imports sinks, configs/plugin
// and, alone in the module, the AWS SDK.
package stores

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

// S3Config says how to reach an S3-compatible server. Credentials never stand
// in it: the SDK takes them from the environment or its shared files.
type S3Config struct {
	Endpoint  string `json:"endpoint,omitempty"`   // URL; empty: AWS
	Region    string `json:"region,omitempty"`     // empty: the SDK's, else us-east-1
	PathStyle bool   `json:"path_style,omitempty"` // implied by Endpoint
	// Checksum is auto (a CRC32 with every put) or off, for servers that refuse
	// it. Empty means auto.
	Checksum string `json:"checksum,omitempty"`
	// Silence is how long the server may send and take nothing before a request
	// counts as lost; 0: 30 s. MaxBackoff is the longest pause before the next
	// try; 0: 20 s.
	Silence    time.Duration `json:"-"`
	MaxBackoff time.Duration `json:"-"`
}

// request is what a store is opened from.
type request struct {
	ctx context.Context
	uri string // without the scheme
	s3  S3Config
}

// registry holds one store per URI scheme.
var registry = &plugin.Registry[sinks.Store, request]{What: "store"}

// Open opens the store that uri names: a path, file://PATH, or
// s3://BUCKET/PREFIX. It does not create anything; a directory comes into being
// with its first object.
func Open(ctx context.Context, uri string, cfg S3Config) (sinks.Store, error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		scheme, rest = "file", uri
	}
	if rest == "" {
		return nil, fmt.Errorf("opening store %q: it names no place: give a path, file://PATH or s3://BUCKET/PREFIX", uri)
	}
	return registry.Build(scheme, nil, request{ctx: ctx, uri: rest, s3: cfg})
}

// reserved is the prefix of names the stores use for themselves; List hides
// them.
const reserved = ".tracesmith-"

// checkKey keeps keys inside the store.
func checkKey(key string) error {
	bad := key == "" || path.Clean(key) != key || path.IsAbs(key) || key == "." || key == ".." ||
		strings.HasPrefix(key, "../") || strings.ContainsAny(key, "\\\x00")
	if bad {
		return fmt.Errorf("object key %q: want a clean relative path with slashes", key)
	}
	return nil
}

// checkNewKey is checkKey for a key that a caller wants to write.
func checkNewKey(key string) error {
	if strings.HasPrefix(key, reserved) {
		return fmt.Errorf("object key %q: names beginning with %s belong to the store", key, reserved)
	}
	return checkKey(key)
}

// guarded is what probe tries of a store, under names that belong to the store.
type guarded struct {
	create func(key string, body []byte) error
	// look returns what replaces the content that key has now.
	look func(key string) (replace func(body []byte) error, err error)
}

// probe is Store.Probe for any store: of two creations of one key, and of two
// replacements of what one look showed, the first must succeed, and the second be
// refused and change nothing.
func probe(ctx context.Context, s sinks.Store, g guarded) (err error) {
	key := reserved + "probe-" + rand.Text()
	defer func() {
		if derr := s.Delete(context.WithoutCancel(ctx), key); derr != nil && err == nil {
			err = fmt.Errorf("removing the probe object: %w", derr)
		}
	}()
	first := []byte("first")
	if err := g.create(key, first); err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := g.create(key, []byte("second")); !errors.Is(err, sinks.ErrExists) {
		if err == nil {
			return fmt.Errorf("probing %s: %w: use a server that honours If-None-Match", s.URI(), sinks.ErrUnsafe)
		}
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := holds(ctx, s, key, first); err != nil {
		return err
	}
	replaced := []byte("replaced")
	replace, err := g.look(key)
	if err == nil {
		err = replace(replaced)
	}
	if err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := replace([]byte("once more")); !errors.Is(err, sinks.ErrChanged) {
		if err == nil {
			return fmt.Errorf("probing %s: %w: use a server that honours If-Match", s.URI(), sinks.ErrUnsafe)
		}
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	return holds(ctx, s, key, replaced)
}

// holds makes sure that a refused write has changed nothing.
func holds(ctx context.Context, s sinks.Store, key string, want []byte) error {
	got, err := s.Get(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = sinks.ErrUnsafe
	}
	if err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	return nil
}
