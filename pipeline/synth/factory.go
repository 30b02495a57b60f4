package synth

import (
	"context"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// job is one unit of work for a repository.
type job struct {
	do    func(context.Context, *worker) error
	key   string
	kind  jobKind
	units int // of work, by which the remaining time is estimated
}

// jobQueue hands out jobs. A worker stays with its repository while that has jobs,
// because its sandbox has the repository's tree. Then it takes a new repository, and
// then helps with the one that has the most jobs.
type jobQueue struct {
	mu     sync.Mutex
	wake   *sync.Cond
	states []*repoState
	fresh  int // states[fresh:] have not been started
	err    error
	ended  func() bool
}

func newJobQueue(ctx context.Context, states []*repoState) *jobQueue {
	s := &jobQueue{states: states, ended: func() bool { return ctx.Err() != nil }}
	s.wake = sync.NewCond(&s.mu)
	return s
}

// next returns a job and its repository; ok is false when no job is left.
func (p *jobQueue) next(current *repoState) (s *repoState, j job, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.err != nil || p.ended() {
			return nil, j, false
		}
		if current != nil && len(current.pending) > 0 {
			return current, current.take(), true
		}
		if p.fresh < len(p.states) {
			s = p.states[p.fresh]
			p.fresh++
			s.running++
			return s, job{do: s.begin, key: "survey"}, true
		}
		busy := false
		for _, other := range p.states {
			if len(other.pending) > 0 && (s == nil || len(other.pending) > len(s.pending)) {
				s = other
			}
			busy = busy || other.running > 0
		}
		if s != nil {
			return s, s.take(), true
		}
		if !busy {
			return nil, j, false
		}
		p.wake.Wait()
	}
}

// take removes the first pending job. The caller holds the queue's lock.
func (s *repoState) take() job {
	j := s.pending[0]
	s.pending = s.pending[1:]
	s.running++
	return j
}

// done ends a job. After the last job of a phase it plans the next phase while holding
// the lock, because planning is quick and changes only the repository's state.
func (p *jobQueue) done(s *repoState, err error, advance func(*repoState) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.running--
	if err == nil && s.running == 0 && len(s.pending) == 0 {
		err = advance(s)
	}
	if err != nil && p.err == nil {
		p.err = err
	}
	p.wake.Broadcast()
}

// factory is one run: its settings, journal, budget, repositories and jobs.
type factory struct {
	cfg     Config
	journal *journal
	queue   *jobQueue
	budget  *modelBudget
	states  []*repoState
	begun   time.Time

	mu       sync.Mutex
	progress Progress
	paces    [jobKinds]pace
	busy     float64 // seconds that jobs took, together
}

// worker does jobs, one at a time, on the bench of a repository.
type worker struct {
	*factory
	bench *bench
	at    *repoState // the repository of the bench
}

// repoState is the progress of one repository.
type repoState struct {
	repo      Repo
	seed      int64
	command   command
	driver    env.Driver
	spec      env.SandboxSpec
	history   *workspace.History // nil if there is no readable history
	noHistory string             // why history is nil
	note      string
	calls     map[string][]string

	first    *piece   // of the survey
	pieces   []string // names of the others
	surveyed bool
	compiled compiledCode
	once     map[string]bool // tests that cannot be repeated in one place
	known    known

	kept     []string
	cpu      float64 // seconds of CPU time of the survey
	runCPU   float64 // of one run of all tests
	seconds  float64
	litter   []string
	coverage coverage

	drawn     []candidate
	tried     int               // drawn candidates that are planned, in a run with a number of tasks
	quota     *int              // bugs to choose at most; nil = no limit
	operators map[string]string // names by id
	releases  map[string]release

	phase   int
	pending []job
	running int
	trials  map[string]*Trial
	order   []string // keys of the trials in the order of planning
	chosen  []*Trial
	refused string
}

// enter opens a bench for a repository, unless the worker has it already.
func (w *worker) enter(ctx context.Context, s *repoState) error {
	if w.bench != nil && w.at == s {
		return nil
	}
	w.leave(ctx)
	b, err := openBench(ctx, s.driver, s.spec, s.repo.Tree, s.command, &s.compiled)
	if err != nil {
		return err
	}
	w.bench, w.at = b, s
	return nil
}

// leave closes the bench.
func (w *worker) leave(ctx context.Context) {
	if w.bench != nil {
		_ = w.bench.close(ctx) // it is not used again
	}
	w.bench, w.at = nil, nil
}

// update changes the progress and reports it.
func (st *factory) update(change func(*Progress)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(&st.progress)
	st.progress.Seconds = time.Since(st.begun).Seconds()
	st.progress.Remaining = st.remaining()
	st.cfg.Progress(st.progress)
}

// worked records that a worker has finished a job.
func (st *factory) worked(j job, seconds float64) {
	st.mu.Lock()
	st.busy += seconds
	st.mu.Unlock()
	st.spend(j.kind, j.units, seconds)
}

// spend records how long units of work took.
func (st *factory) spend(kind jobKind, units int, seconds float64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.paces[kind].units += float64(units)
	st.paces[kind].seconds += seconds
}

// remaining estimates the seconds until all planned jobs are done. The caller holds the lock.
func (st *factory) remaining() float64 {
	p, total := st.progress, 0.0
	for kind, left := range map[jobKind]int{jobSurvey: p.SurveyRuns - p.SurveyDone, jobTrial: p.Planned - p.Judged - p.Unasked, jobRelease: p.Chosen - p.Checked} {
		if at := st.paces[kind]; at.units > 0 {
			total += float64(left) * at.seconds / at.units
		}
	}
	return total / float64(st.cfg.Workers)
}
