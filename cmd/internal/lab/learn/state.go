package learn

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// state is what an agent had seen at some time of an episode.
type state struct {
	task, group, kind string
	candidates        []statement // of the program, not of tests, in the order in which they were first shown
	chosen            int         // index of the candidate that the agent's first breakpoint is at, or -1
	entry             int         // index of the first candidate of the function that was shown last, or -1
	failure           failure
}

// failure is what a state shows about the failing test.
type failure struct {
	test      map[string]bool // words of the failing test
	message   map[string]bool // words of the error and of the task text
	exception string          // name of its type, or ""
	frames    []line          // of the traceback, outermost first
	ochiai    map[line]float64
}

type line struct {
	file   string
	number int
}

var (
	failedTest = regexp.MustCompile(`(?m)^(?:  (\S.*) \((?:failed|error)|FAILED (\S+))`)
	frame      = regexp.MustCompile(`(?m)^(?:E? *File "([^"]+)", line (\d+)|(\S+\.py):(\d+):)`)
	failureEnd = regexp.MustCompile(`(?m)^_{3,} .+ _{3,}$|^={10,}$`)
	errorLine  = regexp.MustCompile(`(?m)^E? *([A-Za-z_.]*(?:Error|Exception|Warning|Failed))\b.*$|^E .*$`)
	scoreLine  = regexp.MustCompile(`(?m)^(\d\.\d{3}) (\S+\.py):(\d+)$`)
	setPoint   = regexp.MustCompile(`(?:^|[;\n])\s*(?:tbreak|break|b)\s+([^\s:,;]+):(\d+)`)
)

// reader collects what the steps of an episode show.
type reader struct {
	task    string // text of the task
	lines   map[string]map[int]string
	order   map[line]int // when a line was first shown
	output  strings.Builder
	latest  []line // what the last step that showed program lines showed
	choice  *line  // place of the first breakpoint
	ochiai  map[line]float64
	atFirst func(*reader) // called before the first breakpoint
}

// read reads the rows of an episode up to its first edit. Lines that the debugger shows do not count,
// because they depend on where the agent stopped.
func (r *reader) read(rows []schemas.StepRow) {
	episode := metrics.Read(rows, "")
	for i := range rows {
		row, reading := &rows[i], &episode.Readings[i]
		if row.Source == "user" && i < 2 {
			r.task = row.Message
		}
		category := schemas.Value(row.ToolCategory)
		if category == "edit" {
			return
		}
		if category == "pdb" {
			if m := setPoint.FindStringSubmatch(reading.Call.Command); m != nil && r.choice == nil {
				n, _ := strconv.Atoi(m[2]) // the pattern ensures digits
				if r.choice = (&line{metrics.Workspace("").Relative(m[1]), n}); r.atFirst != nil {
					r.atFirst(r)
				}
			}
			continue
		}
		r.show(reading)
		if category == "eval" || category == "bash" {
			text := schemas.Value(row.Observation)
			r.output.WriteString(text + "\n")
			for _, m := range scoreLine.FindAllStringSubmatch(text, -1) {
				score, _ := strconv.ParseFloat(m[1], 64)
				n, _ := strconv.Atoi(m[3])
				r.ochiai[line{m[2], n}] = score
			}
		}
	}
}

func newReader() *reader {
	return &reader{lines: map[string]map[int]string{}, order: map[line]int{}, ochiai: map[line]float64{}}
}

func (r *reader) show(reading *metrics.Reading) {
	var program []line
	for _, l := range reading.Lines {
		if path.Ext(l.File) != ".py" {
			continue
		}
		if r.lines[l.File] == nil {
			r.lines[l.File] = map[int]string{}
		}
		if old, ok := r.lines[l.File][l.Number]; !ok || len(l.Text) > len(old) {
			r.lines[l.File][l.Number] = l.Text // tracebacks show lines without indentation
		}
		at := line{l.File, l.Number}
		if _, ok := r.order[at]; !ok {
			r.order[at] = len(r.order)
		}
		if isProgram(l.File) {
			program = append(program, at)
		}
	}
	if len(program) > 0 {
		r.latest = program
	}
}

// isProgram reports whether a file belongs to the program that is debugged.
func isProgram(file string) bool { return !schemas.IsTest(file) && !strings.HasPrefix(file, "/") }

// state returns what was shown so far.
func (r *reader) state() state {
	s := state{chosen: -1, entry: -1}
	var tests []statement
	for file, lines := range r.lines {
		all := statements(file, lines)
		if isProgram(file) {
			s.candidates = append(s.candidates, all...)
		} else {
			tests = append(tests, all...)
		}
	}
	shown := func(st statement) int { return r.order[line{st.file, st.first}] }
	slices.SortFunc(s.candidates, func(a, b statement) int { return cmp.Compare(shown(a), shown(b)) })
	for i, c := range s.candidates {
		if r.choice != nil && c.contains(*r.choice) {
			s.chosen = i
		}
		if s.entry < 0 && slices.ContainsFunc(r.latest, c.contains) {
			s.entry = i
		}
	}
	s.failure = r.readFailure(tests)
	return s
}

// with returns the state with the candidates and scores of another state of the same task.
func (s state) with(other state) state {
	own := s.candidates
	s.candidates = slices.Clone(own)
	for _, c := range other.candidates {
		if !slices.ContainsFunc(own, func(o statement) bool { return o.contains(line{c.file, c.first}) }) {
			s.candidates = append(s.candidates, c)
		}
	}
	if len(other.failure.ochiai) > 0 {
		s.failure.ochiai = other.failure.ochiai
	}
	return s
}

func (s statement) contains(l line) bool {
	return s.file == l.file && s.first <= l.number && l.number <= s.last
}

// readFailure reads the output of the tests: its first failing test, the statements of it that were
// shown, its error and its traceback.
func (r *reader) readFailure(tests []statement) failure {
	c := failure{test: map[string]bool{}, message: map[string]bool{}, ochiai: r.ochiai}
	output := r.output.String()
	for _, w := range words(r.task) {
		c.message[w] = true
	}
	name := ""
	if m := failedTest.FindStringSubmatch(output); m != nil {
		name, _, _ = strings.Cut(m[1]+m[2], "[")
		name = name[strings.LastIndexAny(name, ":. ")+1:]
	}
	for _, st := range tests {
		if st.function != nil && st.function.name == name {
			for _, w := range st.words {
				c.test[w] = true
			}
		}
	}
	if ends := failureEnd.FindAllStringIndex(output, 3); len(ends) > 1 {
		output = output[:ends[1][0]] // the first failure
	}
	for _, m := range errorLine.FindAllStringSubmatch(output, -1) {
		c.exception = cmp.Or(c.exception, m[1])
		for _, w := range words(strings.TrimPrefix(m[0], "E")) {
			c.message[w] = true
		}
	}
	for _, m := range frame.FindAllStringSubmatch(output, -1) {
		if file := metrics.Workspace("").Relative(m[1] + m[3]); isProgram(file) {
			n, _ := strconv.Atoi(m[2] + m[4])
			c.frames = append(c.frames, line{file, n})
		}
	}
	return c
}

// kindOf names the kind of an episode's states: the order in which a baseline agent reads functions,
// or the agent.
func kindOf(e *schemas.EpisodeRow) string {
	var config struct {
		Settings struct {
			Order string `json:"order"`
		} `json:"settings"`
	}
	_ = json.Unmarshal([]byte(schemas.Value(e.ConfigJSON)), &config) // null for imports
	return cmp.Or(config.Settings.Order, e.AgentName)
}
