package middle

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
)

// Endpoint is one server of a model.
type Endpoint struct {
	llms.Client
	Name   string  // for messages
	Weight float64 // relative number of conversations that the endpoint gets; 0 means 1
	Pace   *Pace   // nil: no limit
	// Counter counts the tokens of prompts; nil means the counter for the model's name.
	Counter *tokens.Counter
}

// A server gets no calls for restFor after tripAfter consecutive failures, or after a single
// one if it is unreachable.
const (
	tripAfter = 3
	restFor   = 30 * time.Second
)

// route distributes conversations over the servers of one model. A conversation stays with
// its server, whose prompt cache has its prefix, until that server fails. It then moves to
// the next server, and back when its own has recovered.
type route struct {
	llms.Client // of the first server, for Provider and Model, which are the same for all
	servers     []server
}

type server struct {
	Endpoint
	paced   llms.Client
	breaker *gobreaker.CircuitBreaker[llms.Response]
}

func newRoute(endpoints []Endpoint) *route {
	r := &route{Client: endpoints[0].Client}
	nameCount := map[string]int{}
	for _, e := range endpoints {
		if nameCount[e.Name]++; nameCount[e.Name] > 1 { // one address with several keys
			e.Name = fmt.Sprintf("%s (%d)", e.Name, nameCount[e.Name])
		}
		s := server{Endpoint: e, paced: e.Client}
		if e.Pace != nil {
			s.paced = &pacedClient{Client: e.Client, pace: e.Pace, counter: e.Counter}
		}
		unreachable := false
		s.breaker = gobreaker.NewCircuitBreaker[llms.Response](gobreaker.Settings{
			Name: e.Name, Timeout: restFor,
			IsExcluded: func(err error) bool { return err != nil && llms.ClassOf(err) == "" }, // canceled
			IsSuccessful: func(err error) bool {
				class := llms.ClassOf(err)
				unreachable = class == llms.ClassUnreachable
				return !unreachable && class != llms.ClassServer && class != llms.ClassOverload && class != llms.ClassTimeout
			},
			ReadyToTrip: func(c gobreaker.Counts) bool { return unreachable || c.ConsecutiveFailures >= tripAfter },
		})
		r.servers = append(r.servers, s)
	}
	return r
}

// Chat calls the conversation's server, or the next one in its order if that server gets no
// calls at the moment. It does not retry after a failure.
func (r *route) Chat(ctx context.Context, req llms.Request) (llms.Response, error) {
	if len(r.servers) == 1 { // there is no other server, so the waits of the retry layer suffice
		return r.servers[0].paced.Chat(ctx, req)
	}
	for _, i := range r.order(req.SessionID) {
		s := r.servers[i]
		resp, err := s.breaker.Execute(func() (llms.Response, error) { return s.paced.Chat(ctx, req) })
		if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
			continue
		}
		if e, ok := asError(err); ok {
			e.Message = fmt.Sprintf("%s: %s", s.Name, e.Message)
		}
		return resp, err
	}
	return llms.Response{}, &llms.Error{Class: llms.ClassUnreachable, RetryAfter: restFor,
		Message: fmt.Sprintf("all %d servers of %s failed and get no calls for up to %s", len(r.servers), r.Model(), restFor)}
}

// order ranks the servers for a conversation by weighted rendezvous hashing with the score
// -weight/ln(hash). Each server gets its share of the conversations. If a server joins or
// leaves, no conversation moves between the other servers.
func (r *route) order(session string) []int {
	type ranked struct {
		index int
		score float64
	}
	all := make([]ranked, len(r.servers))
	for i, s := range r.servers {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%s", session, s.Name)
		u := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
		weight := s.Weight
		if weight <= 0 {
			weight = 1
		}
		all[i] = ranked{i, -weight / math.Log(u)}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	out := make([]int, len(all))
	for i, a := range all {
		out[i] = a.index
	}
	return out
}

// mix spreads FNV's low bits over the word (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
