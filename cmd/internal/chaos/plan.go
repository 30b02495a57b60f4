// Package chaos injects faults into a run and checks that they do no harm. It runs a batch
// of scripted episodes as processes of the real program, against a scripted model server. It
// kills and stops the processes, fills their disk, changes their clock, and makes the model
// server and the store fail, by a plan that depends on a seed. Then it checks which episodes
// are staged and published, which model calls were paid, and what is left behind.
//
// The plan places faults at counted model requests and object creations, not at times, so
// that a seed gives the same trial on fast and slow machines.
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

// The faults of processes, of members of a fleet, of the model server and of the staging
// store.
const (
	Kill  Kind = "kill"  // SIGKILL of the run: coordinator, engine and workers
	Guest Kind = "guest" // SIGKILL of the guest of one sandbox
	// Container removes one sandbox of the run with the docker command.
	Container Kind = "container"
	Disk      Kind = "disk"  // the disk of the run directory becomes full
	Stop      Kind = "stop"  // SIGSTOP, and SIGCONT a while later
	Drain     Kind = "drain" // SIGINT: running episodes finish
	Clock     Kind = "clock" // SIGKILL, and a restart with a clock that is an hour off

	Worker      Kind = "worker"      // SIGKILL of a worker
	Coordinator Kind = "coordinator" // SIGKILL of the coordinator
	Node        Kind = "node"        // SIGKILL of a NATS server

	RateLimit Kind = "rate_limit" // status 429 for several requests in a row
	Error500  Kind = "error_500"
	Error529  Kind = "error_529"
	Reset     Kind = "reset"     // connection reset instead of an answer
	Silence   Kind = "silence"   // no answer until the client gives up
	Truncated Kind = "truncated" // half an answer, ended as if it were whole

	StoreError Kind = "store_error" // the store refuses to create an object, as with a 5xx
	StoreLost  Kind = "store_lost"  // the store creates an object, but the answer is lost
	StoreTorn  Kind = "store_torn"  // SIGKILL of the process while it creates an object
	// StoreSilence means that the store creates an object but does not answer until the
	// client gives up.
	StoreSilence Kind = "store_silence"
)

// Kinds lists the faults of a run in one process.
func Kinds() []Kind {
	return append([]Kind{Kill, Guest, Disk, Stop, Drain, Clock}, serviceKinds...)
}

// FleetKinds lists the faults of a run over a cluster. There, Stop lasts longer than a lease,
// and Drain alternates between the coordinator and workers.
func FleetKinds() []Kind {
	return append([]Kind{Worker, Coordinator, Node, Guest, Stop, Drain}, serviceKinds...)
}

// KindsOf lists the faults of a trial. With docker, Container replaces Guest, because guests
// are not children of the run. StoreSilence needs a store on an S3 server.
func KindsOf(fleet bool, sandbox string, s3 bool) []Kind {
	all := Kinds()
	if fleet {
		all = FleetKinds()
	}
	if sandbox == "docker" {
		all[slices.Index(all, Guest)] = Container
	}
	if s3 {
		all = append(all, StoreSilence)
	}
	return all
}

// serviceKinds are the faults of the model server and of the store.
var serviceKinds = []Kind{RateLimit, Error500, Error529, Reset, Silence, Truncated, StoreError, StoreLost, StoreTorn}

// serverFaults maps the faults of the model server to their names in the mock server.
var serverFaults = map[Kind]string{
	RateLimit: "rate_limit_ms", Error500: "server_error", Error529: "overloaded", Reset: "reset", Silence: "stall_start", Truncated: "truncated_json",
}

// storeKinds are the faults of the store.
var storeKinds = []Kind{StoreError, StoreLost, StoreTorn, StoreSilence}

// rateLimitedRequests is how many requests in a row a rate limit refuses.
const rateLimitedRequests = 6

// ParseKinds returns the faults in all that names lists, or all if names is empty.
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

// processFault is one fault of a process. It strikes at the first model request, counting
// from At, at which the process is alive.
type processFault struct {
	Kind Kind
	At   int  // number of a request, from 1
	Late bool // strike after the answer instead of before it
}

// plan holds all faults of a trial.
type plan struct {
	process []processFault // sorted by At
	server  []mock.Fault   // the mock server counts the requests
	store   []storeFault
	count   map[Kind]int // number of planned faults
}

// newPlan distributes faults evenly over a batch and over the kinds.
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
	// The last tenth of the batch has no faults, so that delayed faults can still strike.
	requests, creations := episodes*len(turns)*9/10, episodes*9/10
	takenCreations, takenRequests := map[int]bool{}, map[int]bool{}
	for i, k := range order {
		p.count[k]++
		at := 2 + i*(requests-2)/faults + rnd.IntN(max(1, requests/faults))
		switch {
		case serverFaults[k] != "":
			f := serverFault(k, at)
			for slices.ContainsFunc(f.On, func(n int) bool { return takenRequests[n] }) { // at most one fault per answer
				at++
				f = serverFault(k, at)
			}
			for _, n := range f.On {
				takenRequests[n] = true
			}
			p.server = append(p.server, f)
		case slices.Contains(storeKinds, k):
			at := 1 + i*(creations-1)/faults
			for takenCreations[at] {
				at++
			}
			takenCreations[at] = true
			p.store = append(p.store, storeFault{Kind: k, At: at})
		default:
			p.process = append(p.process, processFault{k, at, rnd.IntN(2) == 0})
		}
	}
	slices.SortStableFunc(p.process, func(a, b processFault) int { return a.At - b.At })
	return p
}

// serverFault returns a fault of the model server at request number at.
func serverFault(k Kind, at int) mock.Fault {
	f := mock.Fault{Kind: serverFaults[k], On: []int{at}}
	for i := 1; k == RateLimit && i < rateLimitedRequests; i++ {
		f.On = append(f.On, at+i)
	}
	return f
}
