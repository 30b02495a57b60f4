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

// storeFault makes one creation of an object fail. The creations of all processes of the batch
// are counted together.
type storeFault struct {
	Kind Kind `json:"kind"`
	At   int  `json:"at"` // number of the creation, from 1
}

// storePlan holds the store's faults and the number of creations so far. A file holds it,
// because all processes of the batch share it and it must outlive them.
type storePlan struct {
	Faults  []storeFault `json:"faults"`
	Created int          `json:"created"`
}

// FaultyStore wraps a staging store so that creations fail as planned in file, which holds a
// storePlan in JSON. Several processes may share the file. Faults of kind StoreSilence have no
// effect.
func FaultyStore(inner sinks.Store, file string) sinks.Store {
	return &faultyStore{Store: inner, file: file}
}

type faultyStore struct {
	sinks.Store
	file string
	mu   sync.Mutex
}

// errStore is the error of a StoreError fault.
var errStore = errors.New("the store answers 503 Service Unavailable")

// UnfinishedWrites implements sinks.Sweeper.
func (s *faultyStore) UnfinishedWrites(ctx context.Context) ([]sinks.UnfinishedWrite, error) {
	if sweeper, ok := s.Store.(sinks.Sweeper); ok {
		return sweeper.UnfinishedWrites(ctx)
	}
	return nil, nil
}

// Create implements sinks.Store.
func (s *faultyStore) Create(ctx context.Context, key string, body []byte) error {
	kind, err := s.next()
	if err != nil {
		return err
	}
	switch kind {
	case StoreError:
		return fmt.Errorf("creating %s: %w", key, errStore)
	case StoreLost:
		if err := s.Store.Create(ctx, key, body); err != nil {
			return err
		}
		return fmt.Errorf("creating %s: %w", key, errors.New("connection reset by peer"))
	case StoreTorn:
		return s.tear(ctx, key, body)
	}
	return s.Store.Create(ctx, key, body)
}

// next counts a creation and returns its fault, if any.
func (s *faultyStore) next() (Kind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock := flock.New(s.file + ".lock")
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("locking the plan of faults: %w", err)
	}
	defer func() { _ = lock.Close() }()
	var p storePlan
	if err := readJSON(s.file, &p); err != nil {
		return "", err
	}
	p.Created++
	if err := writeJSON(s.file, p); err != nil {
		return "", err
	}
	for _, fault := range p.Faults {
		if fault.At == p.Created {
			return fault.Kind, nil
		}
	}
	return "", nil
}

// tear lets the store create the object from a pipe, and kills this process when the store has
// read half of the body.
func (s *faultyStore) tear(ctx context.Context, key string, body []byte) error {
	pipe := filepath.Join(filepath.Dir(s.file), fmt.Sprintf("half-%d", os.Getpid()))
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
		for unread := 1; unread > 0; time.Sleep(time.Millisecond) {
			if unread, err = unix.IoctlGetInt(int(half.Fd()), unix.TIOCINQ); err != nil {
				return
			}
		}
	}()
	if err := s.CreateFile(ctx, key, pipe); err != nil {
		return err
	}
	select {} // wait for the SIGKILL
}

// readJSON reads a plan of store faults.
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

// writeJSON replaces a file atomically, because this process may be killed at any time.
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
