package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// server answers the calls of one host, by passing each call to the part that handles it.
type server struct {
	killer   *killer
	starter  *starter
	watchdog *watchdog

	once  sync.Once
	ready chan struct{} // closed by configure, after it has set the fields below

	workspace workspace
	transfers *transfers
	runs      *runs
	terminals *terminals
}

func newServer(key tagKey, firstTag uint64) *server {
	k := &killer{scopes: newScopes(cmp.Or(firstTag, FirstTag())), reaper: newReaper()}
	return &server{
		killer: k, ready: make(chan struct{}),
		starter:  &starter{tagKey: key, scopes: k.scopes, reaper: k.reaper, traced: canTrace()},
		watchdog: &watchdog{killer: k, wakeups: make(chan struct{}, 1)},
	}
}

// configure creates the parts that need the host's configuration.
func (s *server) configure(config *guestpb.HelloRequest) {
	s.starter.config, s.watchdog.limits = config, config
	s.workspace = workspace(config.Workdir)
	s.transfers = &transfers{known: map[uint64]*transfer{}}
	s.runs = &runs{
		starter: s.starter, killer: s.killer, watchdog: s.watchdog, workspace: s.workspace, transfers: s.transfers,
		cancels: map[uint64]context.CancelFunc{},
	}
	s.terminals = &terminals{
		starter: s.starter, killer: s.killer, watchdog: s.watchdog, workspace: s.workspace,
		open: map[uint64]*terminal{},
	}
	close(s.ready)
}

func (s *server) configured() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// respond handles one call and converts its error to a status. Before Hello, it returns an
// error without calling call.
func respond[R any](s *server, call func() (R, error)) (r R, err error) {
	if !s.configured() {
		return r, status.Error(codes.FailedPrecondition, "the first call must be Hello")
	}
	r, err = call()
	return r, toStatus(err)
}

// respondEmpty is respond for a call without a result.
func respondEmpty(s *server, call func() error) (*guestpb.Empty, error) {
	return respond(s, func() (*guestpb.Empty, error) { return &guestpb.Empty{}, call() })
}

// toStatus converts an error to a status. Client.translate converts the status to an error of
// package env.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	start, _ := errors.AsType[*startError](err)
	code := codes.InvalidArgument
	switch {
	case start != nil && start.code == 127:
		code = codes.Unavailable
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		code = codes.NotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = codes.OutOfRange
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Error(code, strings.ToValidUTF8(err.Error(), "?"))
}

func (s *server) Hello(_ context.Context, r *guestpb.HelloRequest) (*guestpb.HelloResponse, error) {
	err := errors.New("the host called Hello twice")
	s.once.Do(func() {
		if len(r.Workdir) == 0 {
			var dir string
			if dir, err = os.Getwd(); err != nil {
				return
			}
			r.Workdir = []byte(dir)
		}
		if err = os.MkdirAll(string(r.Workdir), 0o755); err == nil {
			s.configure(r)
		}
	})
	if err != nil {
		return nil, toStatus(err)
	}
	return &guestpb.HelloResponse{Protocol: protocol, Workdir: r.Workdir, Pid: int64(os.Getpid())}, nil
}

func (s *server) Run(ctx context.Context, r *guestpb.RunRequest) (*guestpb.RunResponse, error) {
	return respond(s, func() (*guestpb.RunResponse, error) { return s.runs.run(ctx, r) })
}

// Cancel also works before Hello, because the host uses it to check whether the guest is alive.
func (s *server) Cancel(_ context.Context, r *guestpb.CancelRequest) (*guestpb.Empty, error) {
	if s.configured() {
		s.runs.cancel(r.Id)
	}
	return &guestpb.Empty{}, nil
}

func (s *server) Open(_ context.Context, r *guestpb.OpenRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error { return s.terminals.start(r) })
}

func (s *server) Read(ctx context.Context, r *guestpb.ReadRequest) (*guestpb.ReadResponse, error) {
	return respond(s, func() (*guestpb.ReadResponse, error) {
		t, err := s.terminals.get(r.Id)
		if err != nil {
			return nil, err
		}
		return t.read(ctx, time.Duration(r.WaitNs)), nil
	})
}

func (s *server) Write(ctx context.Context, r *guestpb.WriteRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error { return s.terminals.write(ctx, r) })
}

func (s *server) Interrupt(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error { return s.terminals.interrupt(r.Id) })
}

func (s *server) Mark(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.MarkResponse, error) {
	return respond(s, func() (*guestpb.MarkResponse, error) { return s.terminals.mark(r.Id) })
}

func (s *server) KillChildren(_ context.Context, r *guestpb.KillRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error { return s.terminals.killChildren(r) })
}

func (s *server) Close(_ context.Context, r *guestpb.TerminalRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error { return s.terminals.close(r.Id) })
}

func (s *server) Stat(_ context.Context, r *guestpb.StatRequest) (*guestpb.StatResponse, error) {
	return respond(s, func() (*guestpb.StatResponse, error) { return stat(s.workspace.path(r.Path)) })
}

func (s *server) Walk(_ context.Context, r *guestpb.WalkRequest) (*guestpb.WalkResponse, error) {
	return respond(s, func() (*guestpb.WalkResponse, error) { return walk(s.workspace.path(r.Dir), r) })
}

func (s *server) Search(_ context.Context, r *guestpb.SearchRequest) (*guestpb.SearchResponse, error) {
	return respond(s, func() (*guestpb.SearchResponse, error) { return search(s.workspace.path(r.Path), r) })
}

func (s *server) Push(_ context.Context, r *guestpb.PushRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error {
		return s.transfers.push(r, func() (*transfer, error) {
			switch r.Kind {
			case guestpb.Kind_FILE:
				return writeFile(s.workspace, s.workspace.path(r.Path), r.Mode)
			case guestpb.Kind_ARCHIVE:
				return unpackInto(s.workspace.path(r.Path))
			}
			return nil, fmt.Errorf("cannot push %v", r.Kind)
		})
	})
}

func (s *server) Pull(_ context.Context, r *guestpb.PullRequest) (*guestpb.PullResponse, error) {
	return respond(s, func() (*guestpb.PullResponse, error) {
		return s.transfers.pull(r.Id, func() (*transfer, error) {
			switch r.Kind {
			case guestpb.Kind_FILE:
				return readFile(s.workspace.path(r.Path), r.Limit)
			case guestpb.Kind_ARCHIVE:
				return packFrom(s.workspace.path(r.Path))
			}
			return nil, fmt.Errorf("no such transfer of %v", r.Kind)
		})
	})
}

func (s *server) Drop(_ context.Context, r *guestpb.DropRequest) (*guestpb.Empty, error) {
	return respondEmpty(s, func() error {
		s.transfers.drop(r.Id)
		return nil
	})
}
