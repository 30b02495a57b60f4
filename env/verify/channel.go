package verify

import (
	"archive/tar"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed python/*.py
var hooks embed.FS

// maxProcesses is how many interpreters one command line may start with hooks,
// when it can start more than one.
const maxProcesses = 16

// channel is the host's side of one run: where the hooks lie in the sandbox, and
// the key of the first interpreter. Each further one has the hash of the last
// one's, so a later interpreter cannot speak for an earlier one.
type channel struct {
	dir       string // in the sandbox
	key       []byte
	processes int
}

// simpleCommand matches a command line that starts exactly one interpreter:
// assignments, then python, pytest or coverage, without shell operators.
var simpleCommand = regexp.MustCompile("^\\s*([A-Za-z_]\\w*=[^\\s;&|<>`$()]*\\s+)*(\\S*/)?(python[0-9.]*|pytest|py\\.test|coverage)(\\s[^;&|`$()\\n]*)?$")

func newChannel(entrypoint, dir string, key []byte) channel {
	c := channel{dir: dir, key: key, processes: maxProcesses}
	if simpleCommand.MatchString(entrypoint) {
		c.processes = 1
	}
	return c
}

// tar is what is unpacked at dir: the hooks and the key.
func (c channel) tar(workdir string, how Variant) ([]byte, error) {
	files := map[string][]byte{}
	list, err := hooks.ReadDir("python")
	if err != nil {
		return nil, fmt.Errorf("reading embedded hooks: %w", err)
	}
	for _, f := range list {
		if files[f.Name()], err = hooks.ReadFile(path.Join("python", f.Name())); err != nil {
			return nil, fmt.Errorf("reading embedded hooks: %w", err)
		}
	}
	order := how.order()
	maps.Copy(order, map[string]any{
		"key": hex.EncodeToString(c.key), "process": 0, "more": c.processes - 1, "workdir": workdir,
	})
	files["key"], err = json.Marshal(order)
	if err != nil {
		return nil, err
	}
	if how.Probe != nil {
		files["tracesmith_probe.py"] = []byte(how.Probe.Source)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

// launcher puts the hooks on the module path and runs the task's command line.
// A command line that sets PYTHONPATH itself keeps the hooks in front.
const launcher = `export TRACESMITH_CHANNEL="$1" PYTHONPATH="$1${PYTHONPATH:+:$PYTHONPATH}"; exec bash -c "$2"`

var ownPythonPath = regexp.MustCompile(`\bPYTHONPATH=(["']?)`)

func (c channel) args(entrypoint string) []string {
	entrypoint = ownPythonPath.ReplaceAllString(entrypoint, "PYTHONPATH=${1}"+c.dir+":")
	return []string{"bash", "-c", launcher, "tracesmith", c.dir, entrypoint}
}

// record is one line of the hooks (python/tracesmith_channel.py).
type record struct {
	Kind   string          `json:"k"` // begin, plan, collect, test, found, seen, end
	ID     string          `json:"id"`
	Status string          `json:"s"`
	Took   json.Number     `json:"us"`     // test: microseconds of its own function
	Doc    string          `json:"doc"`    // test: first line of its docstring (unittest)
	Hooks  []string        `json:"hooks"`  // plan: workspace files that implement hooks of the runner
	What   json.RawMessage `json:"what"`   // found: a sentence; seen: a watched event, the file that caused it
	Active bool            `json:"active"` // end: a test runner ran in this interpreter
	Exit   *int            `json:"status"` // end: the runner's own exit status
}

// results are the merged records of all interpreters of one run.
type results struct {
	tests       map[string]string // id -> passed, failed, error, skipped, xfailed, xpassed
	seconds     map[string]float64
	docs        map[string]string // id -> first line of its docstring
	twice       []string          // ids reported more than once
	uncollected []string          // what the runner could not collect
	hooks       []string
	seen        [][2]string
	tampered    []string // why the records are not to be trusted
	unfinished  bool     // a runner ended without an exit status of its own
	runners     int      // interpreters in which a test runner ran
	exit        int      // worst exit status of the runners
}

// process is the chain of one interpreter's records while they are read.
type process struct {
	mac   string
	next  int
	began bool
	ended bool
}

// read checks the MACs and merges the records. Whatever does not check is a
// finding in tampered, never an error: the file is written where the program runs.
func (c channel) read(raw []byte) results {
	r := results{tests: map[string]string{}, seconds: map[string]float64{}, docs: map[string]string{}}
	chains := make([]process, c.processes)
	for line := range strings.Lines(string(raw)) {
		mac, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		fields := strings.SplitN(body, " ", 3)
		n, err := strconv.Atoi(fields[0])
		var rec record
		if len(fields) != 3 || err != nil || n < 0 || n >= c.processes || !strings.HasSuffix(line, "\n") ||
			json.Unmarshal([]byte(fields[2]), &rec) != nil {
			return r.forged("holds a line that is no record")
		}
		p := &chains[n]
		if !hmac.Equal([]byte(mac), []byte(c.sign(n, p.mac+" "+body))) || fields[1] != strconv.Itoa(p.next) || p.ended {
			return r.forged("was changed or forged")
		}
		p.mac, p.next = mac, p.next+1
		p.began = true
		p.ended = rec.Kind == "end"
		r.add(rec)
	}
	for _, p := range chains {
		if p.began && !p.ended {
			r.tampered = append(r.tampered, "the interpreter was left without its exit handlers, or died, while results were recorded")
		}
	}
	return r
}

func (r results) forged(how string) results {
	return results{tests: map[string]string{}, tampered: []string{"the file of test results " + how}}
}

// key of the n-th interpreter.
func (c channel) sign(n int, message string) string {
	key := c.key
	for range n {
		sum := sha256.Sum256(append([]byte("next"), key...))
		key = sum[:]
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil))
}

func (r *results) add(rec record) {
	switch rec.Kind {
	case "plan":
		r.hooks = append(r.hooks, rec.Hooks...)
	case "collect":
		r.uncollected = append(r.uncollected, rec.ID)
	case "test":
		if _, again := r.tests[rec.ID]; again {
			r.twice = append(r.twice, rec.ID)
		}
		r.tests[rec.ID] = rec.Status
		if s, ok := seconds(rec.Took); ok {
			r.seconds[rec.ID] = s
		}
		if rec.Doc != "" {
			r.docs[rec.ID] = rec.Doc
		}
	case "found":
		var what string
		if json.Unmarshal(rec.What, &what) != nil {
			what = string(rec.What)
		}
		r.tampered = append(r.tampered, what)
	case "seen":
		var what [2]string
		if json.Unmarshal(rec.What, &what) == nil {
			r.seen = append(r.seen, what)
		}
	case "end":
		if rec.Active {
			r.runners++
			if rec.Exit == nil {
				r.unfinished = true
			} else {
				r.exit = max(r.exit, *rec.Exit)
			}
		}
	}
}
