// Package stores implements sinks.Store for a directory (file) and for an S3 bucket
// (s3). Both pass sinktest.RunStore. It is the only package that imports the AWS SDK.
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

// S3Config describes how to reach an S3-compatible server. It holds no credentials:
// the SDK reads them from the environment or its shared files.
type S3Config struct {
	Endpoint  string `json:"endpoint,omitempty"`   // URL; "" = AWS
	Region    string `json:"region,omitempty"`     // "" = the SDK's region, or us-east-1 if it has none
	PathStyle bool   `json:"path_style,omitempty"` // always true with Endpoint
	// Checksum is auto (a CRC32 with every put) or off, for servers that reject it;
	// "" = auto.
	Checksum string `json:"checksum,omitempty"`
	// Silence is the time after which a request fails if the connection transfers
	// nothing; 0 = 30 s. MaxBackoff is the longest pause before a retry; 0 = 20 s.
	Silence    time.Duration `json:"-"`
	MaxBackoff time.Duration `json:"-"`
}

// request holds the arguments of Open for the constructor of a store.
type request struct {
	ctx context.Context
	uri string // without the scheme
	s3  S3Config
}

// registry holds one store per URI scheme.
var registry = &plugin.Registry[sinks.Store, request]{What: "store"}

// Open opens the store that uri names: a path, file://PATH, or
// s3://BUCKET/PREFIX. It does not create anything; the first object creates the
// directory.
func Open(ctx context.Context, uri string, cfg S3Config) (sinks.Store, error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		scheme, rest = "file", uri
	}
	if rest == "" {
		return nil, fmt.Errorf("opening store %q: the path or bucket is missing: write a path, file://PATH or s3://BUCKET/PREFIX", uri)
	}
	return registry.Build(scheme, nil, request{ctx: ctx, uri: rest, s3: cfg})
}

// reserved is the prefix of keys that stores use internally. List hides them.
const reserved = ".tracesmith-"

// checkKey refuses keys that could lead out of the store.
func checkKey(key string) error {
	isInvalid := key == "" || path.Clean(key) != key || path.IsAbs(key) || key == "." || key == ".." ||
		strings.HasPrefix(key, "../") || strings.ContainsAny(key, "\\\x00")
	if isInvalid {
		return fmt.Errorf("object key %q is not a clean relative path with slashes", key)
	}
	return nil
}

// checkNewKey checks a key that a caller wants to write. It also refuses reserved keys.
func checkNewKey(key string) error {
	if strings.HasPrefix(key, reserved) {
		return fmt.Errorf("object key %q: keys that begin with %s are reserved for the store", key, reserved)
	}
	return checkKey(key)
}

// conditionalWrites holds a store's conditional writes, without the check for reserved keys, for
// probe.
type conditionalWrites struct {
	create func(key string, body []byte) error
	// read returns a function that replaces the current content of key.
	read func(key string) (replace func(body []byte) error, err error)
}

// probe implements Store.Probe. It creates one key twice, and replaces the content that it
// has read twice. In both cases, the first write must succeed, and the second must fail and
// change nothing.
func probe(ctx context.Context, s sinks.Store, w conditionalWrites) (err error) {
	key := reserved + "probe-" + rand.Text()
	defer func() {
		if derr := s.Delete(context.WithoutCancel(ctx), key); derr != nil && err == nil {
			err = fmt.Errorf("removing the probe object: %w", derr)
		}
	}()
	first := []byte("first")
	if err := w.create(key, first); err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := w.create(key, []byte("second")); !errors.Is(err, sinks.ErrExists) {
		if err == nil {
			return fmt.Errorf("probing %s: %w: use a server that honors If-None-Match", s.URI(), sinks.ErrUnsafe)
		}
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := checkContent(ctx, s, key, first); err != nil {
		return err
	}
	replaced := []byte("replaced")
	replace, err := w.read(key)
	if err == nil {
		err = replace(replaced)
	}
	if err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	if err := replace([]byte("once more")); !errors.Is(err, sinks.ErrChanged) {
		if err == nil {
			return fmt.Errorf("probing %s: %w: use a server that honors If-Match", s.URI(), sinks.ErrUnsafe)
		}
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	return checkContent(ctx, s, key, replaced)
}

// checkContent checks that a refused write has changed nothing.
func checkContent(ctx context.Context, s sinks.Store, key string, want []byte) error {
	got, err := s.Get(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = sinks.ErrUnsafe
	}
	if err != nil {
		return fmt.Errorf("probing %s: %w", s.URI(), err)
	}
	return nil
}
