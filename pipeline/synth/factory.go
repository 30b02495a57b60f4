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
	units int // amount of work, from which the remaining time is estimated
}

// jobQueue hands out jobs. A worker stays with its repository while that repository has
// jobs, because its sandbox contains the tree. Then it starts a new repository or, if
// there is none, helps with the one that has the most jobs. It is safe for concurrent use.
type jobQueue struct {
	mu        sync.Mutex
	wake      *sync.Cond
	states    []*repoState
	nextState int // states[nextState:] have not been started
	err       error
	canceled  func() bool
}

func newJobQueue(ctx context.Context, states []*repoState) *jobQueue {
	q := &jobQueue{states: states, canceled: func() bool { return ctx.Err() != nil }}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// next returns a job and its repository. It waits while running jobs may add more jobs;
// ok is false when no job is left or the run has ended.
func (q *jobQueue) next(current *repoState) (s *repoState, j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.err != nil || q.canceled() {
			return nil, j, false
		}
		if current != nil && len(current.pending) > 0 {
			return current, current.popJob(), true
		}
		if q.nextState < len(q.states) {
			s = q.states[q.nextState]
			q.nextState++
			s.running++
			return s, job{do: s.begin, key: "survey"}, true
		}
		busy := false
		for _, other := range q.states {
			if len(other.pending) > 0 && (s == nil || len(other.pending) > len(s.pending)) {
				s = other
			}
			busy = busy || other.running > 0
		}
		if s != nil {
			return s, s.popJob(), true
		}
		if !busy {
			return nil, j, false
		}
		q.wake.Wait()
	}
}

// popJob removes and returns the first pending job. The caller holds the queue's lock.
func (s *repoState) popJob() job {
	j := s.pending[0]
	s.pending = s.pending[1:]
	s.running++
	return j
}

// done records that a job has ended. After the last job of a phase, it calls advance to
// plan the next one. It holds the lock while doing so, because planning is quick and
// changes only the repository's state.
func (q *jobQueue) done(s *repoState, err error, advance func(*repoState) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.running--
	if err == nil && s.running == 0 && len(s.pending) == 0 {
		err = advance(s)
	}
	if err != nil && q.err == nil {
		q.err = err
	}
	q.wake.Broadcast()
}

// factory is one run: its settings, journal, budget, repositories and jobs.
type factory struct {
	cfg     Config
	journal *journal
	queue   *jobQueue
	budget  *modelBudget
	states  []*repoState
	started time.Time

	mu       sync.Mutex
	progress Progress
	paces    [jobKinds]pace
	busy     float64 // total seconds that jobs took
}

// worker runs jobs, one at a time, on the bench of a repository.
type worker struct {
	*factory
	bench *bench
	state *repoState // the repository of the bench; nil without a bench
	meter env.Meter  // of all sandboxes that the worker has closed
}

// sandbox returns the specification of the sandboxes of a repository, which the worker's meter measures.
func (w *worker) sandbox(s *repoState) env.SandboxSpec {
	spec := s.spec
	spec.Meter = &w.meter
	return spec
}

// cpu returns the seconds of CPU time of all sandboxes that the worker has closed.
func (w *worker) cpu() float64 { return w.meter.Used().Seconds() }

// repoState is the progress of one repository.
type repoState struct {
	repo      Repo
	seed      int64
	command   command
	driver    env.Driver
	spec      env.SandboxSpec
	history   *workspace.History  // nil if there is no readable history
	noHistory string              // why history is nil
	note      string              // survey.Note
	calls     map[string][]string // survey.Calls

	first        *surveyPart // the first run of the survey
	parts        []string    // names of the other parts of the survey
	surveyed     bool
	compiled     compiledCode
	unrepeatable map[string]bool // tests that do not pass a second time in the same sandbox
	healthy      healthyResults

	kept     []string // the tests that pass every time, sorted
	cpu      float64  // seconds of CPU time of the survey
	runCPU   float64  // seconds of CPU time of one run of all tests
	seconds  float64  // duration of the slowest run of all tests
	litter   []string
	coverage coverage
	notAlone int // survey.NotAlone

	drawn     []candidate
	tried     map[string]bool   // keys of the drawn candidates planned so far, if Config.Tasks is set
	quota     *int              // maximum number of bugs to choose; nil = no limit
	operators map[string]string // operator ID -> name
	releases  map[string]release

	phase   int
	pending []job
	running int
	trials  map[string]*Trial
	order   []string // keys of the candidates in the order of planning
	chosen  []*Trial
	refused string // why the repository cannot be used
}

// enter opens a bench for a repository, unless the worker has it already.
func (w *worker) enter(ctx context.Context, s *repoState) error {
	if w.bench != nil && w.state == s {
		return nil
	}
	w.leave(ctx)
	b, err := openBench(ctx, s.driver, w.sandbox(s), s.repo.Tree, s.command, &s.compiled)
	if err != nil {
		return err
	}
	w.bench, w.state = b, s
	return nil
}

// leave closes the bench.
func (w *worker) leave(ctx context.Context) {
	if w.bench != nil {
		_ = w.bench.close(ctx) // an error does not matter, because the bench is not used again
	}
	w.bench, w.state = nil, nil
}

// update changes the progress and reports it.
func (st *factory) update(change func(*Progress)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(&st.progress)
	st.progress.Seconds = time.Since(st.started).Seconds()
	st.progress.Remaining = st.remaining()
	st.cfg.Progress(st.progress)
}

// recordJob records how long a job took.
func (st *factory) recordJob(j job, seconds float64) {
	st.mu.Lock()
	st.busy += seconds
	st.mu.Unlock()
	st.recordPace(j.kind, j.units, seconds)
}

// recordPace records how long some units of work took.
func (st *factory) recordPace(kind jobKind, units int, seconds float64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.paces[kind].units += float64(units)
	st.paces[kind].seconds += seconds
}

// remaining estimates the seconds until all planned jobs are done. The caller holds the lock.
func (st *factory) remaining() float64 {
	p, total := st.progress, 0.0
	for kind, left := range map[jobKind]int{jobSurvey: p.SurveyRuns - p.SurveyDone, jobTrial: p.Planned - p.Judged - p.OverBudget, jobRelease: p.Chosen - p.Checked} {
		if at := st.paces[kind]; at.units > 0 {
			total += float64(left) * at.seconds / at.units
		}
	}
	return total / float64(st.cfg.Workers)
}
