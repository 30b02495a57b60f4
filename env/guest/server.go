package guest

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// protocol is the version both halves must agree on.
const protocol = 3

// Bounds of the wire, shared by both halves.
const (
	pieceBytes   = 1 << 20  // of a file, an archive or an output in one message
	maxOutput    = 64 << 20 // a program's output kept in the guest
	maxTransfers = 64
	maxTerminals = 64
)

// server is the guest: one value serves one host.
type server struct {
	key    tagKey
	reaper *reaper
	scopes *scopes
	traced bool          // programs are stopped at their start by tracing, else by a launcher
	busy   chan struct{} // something may have started: the watchdog looks closely
	calmed int           // callers of calm that still hold it; under the reaper's lock
	// inherited goes before the environment the host sends, which wins.
	inherited [][]byte

	once   sync.Once
	ready  chan struct{} // closed once config holds
	config *guestpb.HelloRequest

	opening   sync.Mutex // held while a transfer is opened; before mu
	mu        sync.Mutex
	runs      map[uint64]context.CancelFunc
	terminals map[uint64]*terminal
	transfers map[uint64]*transfer
}

func newServer(key tagKey, firstTag uint64) *server {
	return &server{
		key: key, reaper: newReaper(), scopes: newScopes(cmp.Or(firstTag, FirstTag())), traced: canTrace(),
		busy: make(chan struct{}, 1), ready: make(chan struct{}),
		runs: map[uint64]context.CancelFunc{}, terminals: map[uint64]*terminal{},
		transfers: map[uint64]*transfer{},
	}
}

func (s *server) Hello(_ context.Context, r *guestpb.HelloRequest) (*guestpb.HelloResponse, error) {
	err := errors.New("a second hello")
	s.once.Do(func() {
		if len(r.Workdir) == 0 {
			var dir string
			if dir, err = os.Getwd(); err != nil {
				return
			}
			r.Workdir = []byte(dir)
		}
		if err = os.MkdirAll(string(r.Workdir), 0o755); err == nil {
			s.config = r
			close(s.ready)
		}
	})
	if err != nil {
		return nil, fault(err)
	}
	return &guestpb.HelloResponse{Protocol: protocol, Workdir: r.Workdir, Pid: int64(os.Getpid())}, nil
}

// canTrace tells whether the kernel lets the guest stop a program at its first
// instruction.
func canTrace() bool {
	raw, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(raw))
	return err != nil || scope != "2" && scope != "3" // no such setting, no such rule
}

// configured refuses every call before Hello.
func (s *server) configured() error {
	select {
	case <-s.ready:
		return nil
	default:
		return status.Error(codes.FailedPrecondition, "hello comes first")
	}
}

// path makes a path absolute; relative ones start at the workspace.
func (s *server) path(p []byte) string {
	if name := string(p); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(string(s.config.Workdir), string(p))
}

// environ is the environment of a program: later settings of a name win.
func (s *server) environ(extra [][]byte) []string {
	var out []string
	at := map[string]int{}
	for _, list := range [][][]byte{s.inherited, s.config.Env, extra} {
		for _, kv := range list {
			name, _, _ := strings.Cut(string(kv), "=")
			if i, known := at[name]; known {
				out[i] = string(kv)
				continue
			}
			at[name] = len(out)
			out = append(out, string(kv))
		}
	}
	return out
}

// wake makes the watchdog look now.
func (s *server) wake() {
	select {
	case s.busy <- struct{}{}:
	default:
	}
}

// fault turns an error into what the host maps to the errors of its contract.
func fault(err error) error {
	start, _ := errors.AsType[*errStart](err)
	switch {
	case err == nil:
		return nil
	case start != nil && start.code == 127:
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return status.Error(codes.OutOfRange, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.InvalidArgument, strings.ToValidUTF8(err.Error(), "?"))
}

func texts(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, b := range raw {
		out[i] = string(b)
	}
	return out
}
