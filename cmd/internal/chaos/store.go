package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/sinks"
)

// storeFault makes one creation of an object fail: the one with number At, counted from 1
// over all processes of the batch.
type storeFault struct {
	Kind Kind `json:"kind"`
	At   int  `json:"at"`
}

// storePlan holds the store's faults and the number of creations so far. It is kept in a
// file, because all processes of the batch share it and it must outlive them.
type storePlan struct {
	Faults  []storeFault `json:"faults"`
	Created int          `json:"created"`
}

// Faulty wraps a staging store so that creations fail as planned in file, which holds a
// storePlan in JSON. Several processes may share the file. Faults of kind StoreSilence have
// no effect.
func Faulty(inner sinks.Store, file string) sinks.Store { return &faulty{Store: inner, file: file} }

type faulty struct {
	sinks.Store
	file string
	mu   sync.Mutex
}

// errStore is the error of a StoreError fault.
var errStore = errors.New("the store answers 503 Service Unavailable")

// Torn implements sinks.Sweeper.
func (f *faulty) Torn(ctx context.Context) ([]sinks.Torn, error) {
	if s, ok := f.Store.(sinks.Sweeper); ok {
		return s.Torn(ctx)
	}
	return nil, nil
}

// Create implements sinks.Store.
func (f *faulty) Create(ctx context.Context, key string, body []byte) error {
	kind, err := f.next()
	if err != nil {
		return err
	}
	switch kind {
	case StoreError:
		return fmt.Errorf("creating %s: %w", key, errStore)
	case StoreLost:
		if err := f.Store.Create(ctx, key, body); err != nil {
			return err
		}
		return fmt.Errorf("creating %s: %w", key, errors.New("connection reset by peer"))
	case StoreTorn:
		return f.tear(ctx, key, body)
	}
	return f.Store.Create(ctx, key, body)
}

// next counts a creation and returns its fault, if any.
func (f *faulty) next() (Kind, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := flock.New(f.file + ".lock")
	if err := others.Lock(); err != nil {
		return "", fmt.Errorf("locking the plan of faults: %w", err)
	}
	defer func() { _ = others.Close() }()
	var p storePlan
	if err := readJSON(f.file, &p); err != nil {
		return "", err
	}
	p.Created++
	if err := writeJSON(f.file, p); err != nil {
		return "", err
	}
	for _, fault := range p.Faults {
		if fault.At == p.Created {
			return fault.Kind, nil
		}
	}
	return "", nil
}

// tear lets the store create the object from a pipe, and kills this process once the store
// has read half of the body.
func (f *faulty) tear(ctx context.Context, key string, body []byte) error {
	pipe := filepath.Join(filepath.Dir(f.file), fmt.Sprintf("half-%d", os.Getpid()))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	go func() {
		defer func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }()
		half, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		_ = os.Remove(pipe)
		_, _ = bytes.NewReader(body[:len(body)/2]).WriteTo(half)
		for left := 1; left > 0; time.Sleep(time.Millisecond) {
			if left, err = unix.IoctlGetInt(int(half.Fd()), unix.TIOCINQ); err != nil {
				return
			}
		}
	}()
	if err := f.CreateFile(ctx, key, pipe); err != nil {
		return err
	}
	select {} // the kill is under way
}

func readJSON(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("reading the plan of faults: %w", err)
	}
	return nil
}

// writeJSON replaces a file atomically, because its writer may be killed.
func writeJSON(file string, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = renameio.WriteFile(file, raw, 0o600, renameio.WithTempDir(filepath.Dir(file)))
	}
	if err != nil {
		return fmt.Errorf("writing the plan of faults: %w", err)
	}
	return nil
}
