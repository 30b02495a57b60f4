// Package density measures how many live debugging sessions fit on a machine. It opens
// sessions up to a given number, keeps all of them alive, and reports the memory they
// use and how long old sessions take to answer.
//
// Every session is a complete environment: sandbox, guest, workspace, and pdb stopped at
// a breakpoint of Program. Each session has a different value in its program, so that an answer
// from another session would be noticed.
package density

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Program is the program that each session debugs, in the file ProgramName. Its value at
// line stopLine depends on the environment variable NUMBER.
//
//go:embed program.py
var Program []byte

// The program's name and command, the line at which sessions stop, and the factor of NUMBER in the value.
const (
	ProgramName = "program.py"
	Entrypoint  = "python3 " + ProgramName
	stopLine    = 6
	factor      = 7919
)

// Config configures one run.
type Config struct {
	Sessions int
	Step     int           // sessions between two measurements
	Openers  int           // sessions opened concurrently
	Asks     int           // number of answers requested for each measurement
	Memory   int64         // bytes of memory at which the run stops; 0 = no limit
	Keep     time.Duration // how long all sessions are kept alive at the end
	// Entrypoint is the debugged command; "" = the constant Entrypoint.
	Entrypoint string
	Seed       uint64
	// Containers means that the sandboxes are containers, whose guests do not reveal
	// their owner. All guests younger than this process are then counted.
	Containers bool
	// Open creates the environment of one session without starting it.
	Open func(context.Context) (env.Env, error)
	// Progress, if not nil, is called after each measurement.
	Progress func(Point)
}

// Point is one measurement. Sizes are bytes.
type Point struct {
	Sessions int    `json:"sessions"`
	Used     int64  `json:"used"` // decrease of available memory since before the first session; negative if other processes freed more
	Memory   Memory `json:"memory"`
	Kernel   Kernel `json:"kernel"` // increase since before the first session

	Opened   Latency `json:"opened_ms"` // time to open a session, up to the breakpoint, since the last point
	Answered Latency `json:"answered_ms"`
}

// Latency summarizes durations in milliseconds.
type Latency struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Report is the outcome of a run.
type Report struct {
	Schema  string  `json:"schema"`
	Asked   int     `json:"asked"`
	Reached int     `json:"reached"`
	Stopped string  `json:"stopped,omitempty"` // why Reached is less than Asked
	Points  []Point `json:"points"`
	Wrong   int     `json:"wrong"` // answers other than the session's own value
	Checked int     `json:"checked"`
	// IdleCPU is the number of cores that all sandboxes used while idle; nil without
	// Keep.
	IdleCPU *float64 `json:"idle_cpu_cores"`
	Wall    float64  `json:"wall_seconds"`
}

// session is one live environment.
type session struct {
	env.Env
	number int
	mu     sync.Mutex
}

// run is the state of one call of Run.
type run struct {
	cfg      Config
	random   *rand.Rand
	sessions []*session
	before   machine
	report   Report
}

// Run opens the sessions, measures and closes them. Reaching the memory limit or failing
// to open a session is not an error: the report says so. With an error, the report
// contains the measurements before it.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Entrypoint == "" {
		cfg.Entrypoint = Entrypoint
	}
	r := &run{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), report: Report{Schema: "tracesmith.soak.sessions/1", Asked: cfg.Sessions}}
	began := time.Now()
	defer r.close(context.WithoutCancel(ctx))
	err := r.openAndMeasure(ctx)
	r.report.Reached, r.report.Wall = len(r.sessions), time.Since(began).Seconds()
	return r.report, err
}

// openAndMeasure opens the sessions step by step, keeps them alive and asks each once more.
func (r *run) openAndMeasure(ctx context.Context) (err error) {
	if r.before, err = readMachine(); err != nil {
		return err
	}
	for len(r.sessions) < r.cfg.Sessions && r.report.Stopped == "" {
		if err := r.grow(ctx); err != nil {
			return err
		}
	}
	if err := r.keep(ctx); err != nil {
		return err
	}
	for _, s := range r.sessions {
		if _, err := r.ask(ctx, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// grow opens the sessions of one step and measures.
func (r *run) grow(ctx context.Context) error {
	opened, failed := r.open(ctx, min(r.cfg.Step, r.cfg.Sessions-len(r.sessions)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		r.report.Stopped = failed.Error()
	}
	if len(r.sessions) == 0 {
		return failed
	}
	p, err := r.measure(ctx)
	if err != nil {
		return err
	}
	p.Opened = summarize(opened)
	r.report.Points = append(r.report.Points, p)
	if r.cfg.Memory > 0 && max(p.Used, p.Memory.PSS()) > r.cfg.Memory && r.report.Stopped == "" && p.Sessions < r.cfg.Sessions {
		r.report.Stopped = "the memory limit is reached"
	}
	if r.cfg.Progress != nil {
		r.cfg.Progress(p)
	}
	return nil
}

// open opens n sessions. The error is that of the first session that could not be opened.
func (r *run) open(ctx context.Context, n int) (took []time.Duration, failed error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(1, r.cfg.Openers) {
		wg.Go(func() {
			for number := range next {
				began := time.Now()
				s, err := r.session(ctx, number)
				mu.Lock()
				switch {
				case err != nil && failed == nil:
					failed = fmt.Errorf("opening session %d: %w", number, err)
				case err == nil:
					r.sessions = append(r.sessions, s)
					took = append(took, time.Since(began))
				}
				mu.Unlock()
			}
		})
	}
	for i, first := 0, len(r.sessions); i < n; i++ {
		mu.Lock()
		stop := failed != nil || ctx.Err() != nil
		mu.Unlock()
		if stop {
			break
		}
		next <- first + i + 1
	}
	close(next)
	wg.Wait()
	return took, failed
}

// session opens one session and runs its program to the breakpoint.
func (r *run) session(ctx context.Context, number int) (*session, error) {
	e, err := r.cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{Env: e, number: number}
	_, err = e.Reset(ctx, false)
	for _, arguments := range []map[string]string{
		{"command": fmt.Sprintf("b %s:%d", ProgramName, stopLine), "entrypoint": fmt.Sprintf("NUMBER=%d %s", number, r.cfg.Entrypoint)},
		{"command": "c"},
	} {
		var output string
		if err == nil {
			output, err = s.pdb(ctx, arguments)
		}
		if err == nil && arguments["command"] == "c" && !strings.Contains(output, ProgramName+":6 in hold") {
			err = fmt.Errorf("pdb did not stop at the breakpoint: %s", output)
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// pdb makes one call of tool pdb.
func (s *session) pdb(ctx context.Context, arguments map[string]string) (string, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := s.Step(ctx, schemas.ToolCall{ID: "1", Name: "pdb", Arguments: raw})
	if err != nil {
		return "", err
	}
	if info.Observation.IsError {
		return "", errors.New(info.Observation.Text)
	}
	return info.Observation.Text, nil
}

// ask asks a session for its value and checks the answer.
func (r *run) ask(ctx context.Context, s *session) (time.Duration, error) {
	began := time.Now()
	output, err := s.pdb(ctx, map[string]string{"command": "p value"})
	took := time.Since(began)
	if ctx.Err() != nil {
		return took, ctx.Err()
	}
	r.report.Checked++
	if first, _, _ := strings.Cut(output, "\n"); err != nil || first != fmt.Sprint(s.number*factor) {
		r.report.Wrong++
	}
	return took, nil
}

// measure asks random sessions and reads the machine's memory.
func (r *run) measure(ctx context.Context) (Point, error) {
	p := Point{Sessions: len(r.sessions)}
	var took []time.Duration
	for range r.cfg.Asks {
		d, err := r.ask(ctx, r.sessions[r.random.IntN(len(r.sessions))])
		if err != nil {
			return p, err
		}
		took = append(took, d)
	}
	p.Answered = summarize(took)
	now, err := readMachine()
	if err != nil {
		return p, err
	}
	p.Used, p.Kernel = r.before.available-now.available, now.kernel.minus(r.before.kernel)
	p.Memory, err = readMemory(r.cfg.Containers)
	return p, err
}

// keep keeps all sessions alive for cfg.Keep: idle in the first half, and answering at
// random in the second.
func (r *run) keep(ctx context.Context) error {
	if r.cfg.Keep <= 0 || len(r.sessions) == 0 {
		return nil
	}
	half := r.cfg.Keep / 2
	before, err := readMemory(r.cfg.Containers)
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case <-time.After(half):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := readMemory(r.cfg.Containers)
	if err != nil {
		return err
	}
	cores := (after.cpu() - before.cpu()).Seconds() / time.Since(began).Seconds()
	r.report.IdleCPU = &cores
	for time.Since(began) < r.cfg.Keep {
		if _, err := r.ask(ctx, r.sessions[r.random.IntN(len(r.sessions))]); err != nil {
			return err
		}
	}
	return nil
}

// close closes all sessions, several concurrently.
func (r *run) close(ctx context.Context) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, s := range r.sessions {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_ = s.Close(ctx)
		})
	}
	wg.Wait()
}
