// Package chaos injects faults into a run and checks that they do no harm. It starts a
// batch of scripted episodes as processes of the real program, against its own model
// server, which counts requests. It kills, stops, starves and misleads the processes by
// a plan that a seed decides, and checks what is staged, published, paid and left behind.
//
// Faults strike at counted requests and creations, never at times, so that the same seed
// strikes the same points on a slow machine.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/llms/mock"
)

// Kind is a kind of fault.
type Kind string

// The faults of a process, of parts of a fleet, of the model server's answers, and of
// the staging store.
const (
	Kill  Kind = "kill"  // SIGKILL of the run: coordinator, engine and workers
	Guest Kind = "guest" // SIGKILL of the guest of one sandbox
	// Container removes one sandbox of the run with the docker command.
	Container Kind = "container"
	Disk      Kind = "disk"  // the run directory's disk is full
	Stop      Kind = "stop"  // SIGSTOP, and SIGCONT a while later
	Drain     Kind = "drain" // SIGINT: running episodes finish
	Clock     Kind = "clock" // SIGKILL, and a restart with a clock that is an hour off

	Worker      Kind = "worker"      // SIGKILL of a worker
	Coordinator Kind = "coordinator" // SIGKILL of the coordinator
	Node        Kind = "node"        // SIGKILL of a NATS server

	RateLimit Kind = "rate_limit" // a storm of 429
	Error500  Kind = "error_500"
	Error529  Kind = "error_529"
	Reset     Kind = "reset"     // connection reset instead of an answer
	Silence   Kind = "silence"   // no answer until the client gives up
	Truncated Kind = "truncated" // half an answer, ended as if it were whole

	StoreError Kind = "store_error" // an object is refused, as by a 5xx
	StoreLost  Kind = "store_lost"  // an object is created and the answer is lost
	StoreTorn  Kind = "store_torn"  // killed in the middle of an object
	// StoreSilence: an object is created, and no answer comes until the client gives up.
	StoreSilence Kind = "store_silence"
)

// Kinds lists the faults of a run in one process.
func Kinds() []Kind {
	return append([]Kind{Kill, Guest, Disk, Stop, Drain, Clock}, ofOthers...)
}

// FleetKinds lists the faults of a run over a cluster, where Stop is longer than a lease
// and Drain strikes the coordinator and workers in turn.
func FleetKinds() []Kind {
	return append([]Kind{Worker, Coordinator, Node, Guest, Stop, Drain}, ofOthers...)
}

// KindsOf lists the faults of a trial. With docker, Container replaces Guest, because
// guests are not children of the run. Only a store on a server can fall silent.
func KindsOf(fleet bool, sandbox string, server bool) []Kind {
	all := Kinds()
	if fleet {
		all = FleetKinds()
	}
	if sandbox == "docker" {
		all[slices.Index(all, Guest)] = Container
	}
	if server {
		all = append(all, StoreSilence)
	}
	return all
}

var ofOthers = []Kind{RateLimit, Error500, Error529, Reset, Silence, Truncated, StoreError, StoreLost, StoreTorn}

// ofServer maps the faults of the model server to its names for them.
var ofServer = map[Kind]string{
	RateLimit: "rate_limit_ms", Error500: "server_error", Error529: "overloaded", Reset: "reset", Silence: "stall_start", Truncated: "truncated_json",
}

var ofStore = []Kind{StoreError, StoreLost, StoreTorn, StoreSilence}

// storm is how many requests in a row a rate limit refuses.
const storm = 6

// ParseKinds returns the faults with these names; no names mean all.
func ParseKinds(names []string, all []Kind) ([]Kind, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []Kind
	for _, name := range names {
		k := Kind(name)
		if !slices.Contains(all, k) {
			return nil, fmt.Errorf("no fault %q: there are %s", name, strings.Trim(fmt.Sprint(all), "[]"))
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out, nil
}

// planned is one fault of a process. It strikes at the first request from At on at which
// the process is alive.
type planned struct {
	Kind Kind
	At   int
	Late bool // after the answer instead of before
}

// plan holds all faults of a trial.
type plan struct {
	process []planned    // by At
	server  []mock.Fault // at the server's own count
	store   []storeFault // at the count of creations
	count   map[Kind]int
}

// newPlan spreads faults over a batch, each kind in turn.
func newPlan(seed uint64, kinds []Kind, faults, episodes int) plan {
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := plan{count: map[Kind]int{}}
	var order []Kind
	for len(order) < faults {
		round := slices.Clone(kinds)
		rnd.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		order = append(order, round...)
	}
	order = order[:faults]
	// The last tenth has no faults, so that delayed faults still find a request.
	requests, creations := episodes*len(turns)*9/10, episodes*9/10
	taken, struck := map[int]bool{}, map[int]bool{}
	for i, k := range order {
		p.count[k]++
		at := 2 + i*(requests-2)/faults + rnd.IntN(max(1, requests/faults))
		switch {
		case ofServer[k] != "":
			f := serverFault(k, at)
			for slices.ContainsFunc(f.On, func(n int) bool { return struck[n] }) { // at most one fault per answer
				at++
				f = serverFault(k, at)
			}
			for _, n := range f.On {
				struck[n] = true
			}
			p.server = append(p.server, f)
		case slices.Contains(ofStore, k):
			at := 1 + i*(creations-1)/faults
			for taken[at] {
				at++
			}
			taken[at] = true
			p.store = append(p.store, storeFault{Kind: k, At: at})
		default:
			p.process = append(p.process, planned{k, at, rnd.IntN(2) == 0})
		}
	}
	slices.SortStableFunc(p.process, func(a, b planned) int { return a.At - b.At })
	return p
}

func serverFault(k Kind, at int) mock.Fault {
	f := mock.Fault{Kind: ofServer[k], On: []int{at}}
	for i := 1; k == RateLimit && i < storm; i++ {
		f.On = append(f.On, at+i)
	}
	return f
}
