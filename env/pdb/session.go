package pdb

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/framing"
)

// The parts of the shim in their order, which shim/channel.py explains.
var (
	//go:embed shim/channel.py
	channelPart string
	//go:embed shim/source.py
	sourcePart string
	//go:embed shim/breakpoints.py
	breakpointsPart string
	//go:embed shim/threads.py
	threadsPart string
	//go:embed shim/monitoring.py
	monitoringPart string
	//go:embed shim/names.py
	namesPart string
	//go:embed shim/debugger.py
	debuggerPart string
	//go:embed shim/start.py
	startPart string
	//go:embed shim/launch.sh
	launch string

	shim = strings.Join([]string{channelPart, sourcePart, breakpointsPart, threadsPart, monitoringPart, namesPart, debuggerPart, startPart}, "\x00")
)

// message is a request to the shim, sent as one line. The answer must contain Nonce.
type message struct {
	Nonce       string           `json:"nonce"`
	Breakpoints []shimBreakpoint `json:"breakpoints,omitzero"` // nil leaves them unchanged, an empty list removes them
	Break       *breakRequest    `json:"break,omitempty"`
	Command     string           `json:"command,omitempty"`
}

// breakRequest asks the shim for the file and line of a breakpoint. Spec is what the model wrote.
type breakRequest struct {
	Spec      string `json:"spec"`
	Condition string `json:"condition,omitempty"`
}

// state is the report of the shim at a prompt and at the end of the program.
type state struct {
	Event             string   `json:"event"`
	File              string   `json:"file"`
	Line              int      `json:"line"`
	Function          string   `json:"function"`
	Depth             int      `json:"depth"`
	First             int      `json:"first"` // line number of Lines[0]
	Lines             []string `json:"lines"`
	Refused           bool     `json:"refused"`
	Changed           []string `json:"changed"` // files that have changed since the program loaded them
	PostMortem        bool     `json:"post_mortem"`
	Caught            bool     `json:"caught"`             // the program called pdb for an exception that it has caught
	HandlesInterrupts bool     `json:"handles_interrupts"` // the program handles interrupts itself
	ExitCode          int      `json:"exit_code"`
	Points            [][3]int `json:"points"`   // number, hits, ignore
	Missed            [][2]int `json:"missed"`   // at the end: breakpoints at which it never stopped, with how often their line was reached
	Children          bool     `json:"children"` // at the end: it had child processes
	Expired           []int    `json:"expired"`  // numbers of temporary breakpoints that were hit and removed
	Answer            struct {
		Break *struct {
			File string `json:"file"`
			Line int    `json:"line"`
		} `json:"break"`
		Unplaced []unplacedPoint `json:"unplaced"`
	} `json:"answer"`
}

// unplacedPoint is a breakpoint that the shim could not set.
type unplacedPoint struct {
	number int
	reason string
}

func (l *unplacedPoint) UnmarshalJSON(b []byte) error {
	pair := [2]any{&l.number, &l.reason}
	return json.Unmarshal(b, &pair)
}

// session is one run of the program under the shim.
type session struct {
	conn     *framing.Conn
	state    state
	stale    bool // a file was edited after the start
	ended    bool
	exitCode int  // valid if ended
	killed   bool // the debugger killed it because it did not answer in time
	broken   bool // the debugger killed it because the program wrote an invalid frame
}

// result is the output of one exchange.
type result struct {
	framing.Output
	timedOut bool
}

// lineStartMark is the escape sequence that the shim writes before the debugger's output.
const lineStartMark = "\x1b]7717;\a"

// text returns the output without trailing newlines. If the program ended its output within a
// line, text inserts a newline before the debugger's output.
func (r result) text() string {
	parts := strings.Split(r.Text(), lineStartMark)
	for i := range parts[1:] {
		if before := parts[i]; before != "" && parts[i+1] != "" && !strings.HasSuffix(before, "\n") {
			parts[i] += "\n"
		}
	}
	return strings.TrimRight(strings.Join(parts, ""), "\n")
}

// start starts the program and waits for the first prompt. If the process ends before that, the
// session has ended and the output says why.
func start(ctx context.Context, cfg Config, commandLine string, deadline time.Time) (*session, result, error) {
	term, err := cfg.Sandbox.Open(ctx, env.TerminalSpec{
		// This uses pipes rather than a pseudo-terminal, so that the program cannot open /dev/tty and
		// read the debugger's commands. The third parameter is the workspace as the sandbox sees it.
		Args: []string{"bash", "-c", `set -- "$1" "$2" "$PWD"; ` + commandLine, "sh", bootstrap, launch}, Dir: cfg.Workdir, Env: cfg.Env,
	})
	if err != nil {
		return nil, result{}, fmt.Errorf("starting the debugger: %w", err)
	}
	s := &session{conn: framing.NewConn(term, cfg.MaxOutput)}
	config, err := json.Marshal(map[string]any{"nonce": s.conn.Expect(), "context": cfg.Context, "workdir": cfg.Workdir})
	if err != nil {
		return nil, result{}, errors.Join(fmt.Errorf("encoding the debugger's configuration: %w", err), s.close(ctx))
	}
	hello := append(fmt.Appendf(nil, "%08d%s", len(shim), shim), encode(config)...)
	r, err := s.exchange(ctx, cfg, hello, deadline)
	return s, r, err
}

func encode(b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(nil, b), '\n')
}

// request sends m and waits for the next prompt or the end of the program.
func (s *session) request(ctx context.Context, cfg Config, m message, deadline time.Time) (result, error) {
	m.Nonce = s.conn.Expect()
	b, err := json.Marshal(m)
	if err != nil {
		return result{}, fmt.Errorf("encoding a debugger command: %w", err)
	}
	return s.exchange(ctx, cfg, encode(b), deadline)
}

// exchange writes input and waits for the answer. At the deadline it interrupts the program, and
// kills it if no prompt follows within the grace period. It kills a program that has not started or
// that handles interrupts itself at the deadline. An error means that the sandbox failed; the
// session has then ended.
func (s *session) exchange(ctx context.Context, cfg Config, input []byte, deadline time.Time) (result, error) {
	r, err := s.conn.Exchange(ctx, input, time.Until(deadline))
	out := result{Output: r.Output, timedOut: r.TimedOut}
	end := deadline.Add(cfg.Grace)
	started := s.state.Event != "" // before the first prompt, there is no program to interrupt
	if err == nil && r.TimedOut && started && !s.state.HandlesInterrupts {
		if err = s.conn.Interrupt(ctx); err == nil {
			end = time.Now().Add(cfg.Grace)
			r, err = s.conn.Await(ctx, time.Until(end))
			out.Output = out.Then(r.Output)
		}
	}
	if err == nil && r.Frame != nil {
		if !s.readState(r.Frame, cfg.Context) {
			s.broken, r.Frame = true, nil
		} else if s.state.Event == "finished" {
			// The interpreter is shutting down. The rest of its output belongs to this command.
			code := s.state.ExitCode
			r, err = s.conn.Await(ctx, time.Until(end))
			out.Output = out.Then(r.Output)
			if !r.Exited {
				out.timedOut, r.TimedOut, r.ExitCode = true, false, code
			}
			r.Frame = nil
		}
	}
	if err == nil && r.Frame != nil {
		return out, nil
	}
	s.ended, s.exitCode, s.killed = true, r.ExitCode, r.TimedOut
	return out, errors.Join(err, s.close(ctx))
}

// readState decodes the state in a frame. It returns false if the frame contains anything else,
// which is possible because the shim and the program share a process.
func (s *session) readState(frame json.RawMessage, context int) bool {
	var st state
	if json.Unmarshal(frame, &st) != nil {
		return false
	}
	st.Lines = st.Lines[:min(len(st.Lines), 2*context+1)]
	s.state = st
	return true
}

// close kills the process.
func (s *session) close(ctx context.Context) error {
	s.ended = true
	if err := s.conn.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("closing the debugger: %w", err)
	}
	return nil
}
