package verify

import (
	"archive/zip"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

//go:embed python/*.py
var hooks embed.FS

// channel is the host's end of one run: the place in the sandbox where interpreters report, and the
// keys with which they sign. The guest gives the n-th interpreter that the entrypoint starts the
// n-th key, and gives none to processes that an interpreter starts.
type channel struct {
	dir  string // in the sandbox; its last part is the name of the socket
	keys env.Keys
}

func newChannel(temp string) channel {
	var secret [48]byte
	rand.Read(secret[:]) // never fails
	name := "tracesmith-" + hex.EncodeToString(secret[:16])
	return channel{path.Join(temp, "."+name), env.Keys{Name: "." + name, Secret: secret[16:]}}
}

// hooksPath is the path of the hooks for interpreters, the command's sealed file.
var hooksPath = fmt.Sprintf("/proc/self/fd/%d", env.SealedFile)

// archive is the content of the sealed file: the hooks and their configuration.
func (c channel) archive(workdir string, how Variant) ([]byte, error) {
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
	order["workdir"] = workdir
	if files["order.json"], err = json.Marshal(order); err != nil {
		return nil, err
	}
	if how.Probe != nil {
		files["tracesmith_probe.py"] = []byte(how.Probe.Source)
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for name, content := range files {
		// Stored, so that an interpreter without zlib can read it.
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(content); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return buf.Bytes(), err
}

// launcher adds the hooks to the module path and runs the task's command line. If the command line
// sets PYTHONPATH itself, the hooks stay in front. If the user's module directory does not exist at
// the start, interpreters must not use one that appears later: they would run its content before
// the hooks.
const launcher = `export TRACESMITH_CHANNEL="$1" PYTHONPATH="$2${PYTHONPATH:+:$PYTHONPATH}"
[ -e "$HOME/.local/lib" ] || [ -n "$PYTHONNOUSERSITE" ] || export PYTHONNOUSERSITE=tracesmith
exec bash -c "$3"`

var ownPythonPath = regexp.MustCompile(`\bPYTHONPATH=(["']?)`)

func (c channel) args(entrypoint string) []string {
	entrypoint = ownPythonPath.ReplaceAllString(entrypoint, "PYTHONPATH=${1}"+hooksPath+":")
	return []string{"bash", "-c", launcher, "tracesmith", c.dir, hooksPath, entrypoint}
}

// record is one line of the hooks (python/tracesmith_channel.py).
type record struct {
	Kind   string          `json:"k"` // begin, runner, plan, collect, start, test, found, seen, end
	ID     string          `json:"id"`
	Status string          `json:"s"`
	Took   json.Number     `json:"us"`     // test: microseconds of its own function
	Doc    string          `json:"doc"`    // test: first line of its docstring (unittest)
	Hooks  []string        `json:"hooks"`  // plan: workspace files that implement hooks of the runner
	IDs    []string        `json:"ids"`    // plan: the tests that are to run
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
	planned     []string          // ids of the tests that were to run
	running     string            // id of the test that began and has no result, "" without one
	died        bool              // an interpreter ended without its exit handlers
	hooks       []string
	seen        [][2]string
	tampered    []string // why the records are not to be trusted
	unfinished  bool     // a runner ended without an exit status of its own
	runners     int      // interpreters in which a test runner ran
	ended       int      // interpreters that ran their exit handlers
	exit        int      // worst exit status of the runners
}

// process is the chain of one interpreter's records while they are read.
type process struct {
	mac   string
	next  int
	began bool
	ended bool
}

// read checks the MACs and merges the records. outlived is env.Result.Keys. An invalid record is a
// finding in tampered, never an error, because the program can write to the file.
func (c channel) read(raw []byte, outlived []bool) results {
	r := results{tests: map[string]string{}, seconds: map[string]float64{}, docs: map[string]string{}}
	chains := make([]process, len(outlived))
	for line := range strings.Lines(string(raw)) {
		mac, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		fields := strings.SplitN(body, " ", 3)
		n, err := strconv.Atoi(fields[0])
		var rec record
		if len(fields) != 3 || err != nil || n < 0 || n >= len(chains) || !strings.HasSuffix(line, "\n") ||
			json.Unmarshal([]byte(fields[2]), &rec) != nil {
			return forged("contains a line that is not a record")
		}
		p := &chains[n]
		if !hmac.Equal([]byte(mac), []byte(c.sign(n, p.mac+" "+body))) || fields[1] != strconv.Itoa(p.next) || p.ended {
			return forged("was changed or forged")
		}
		p.mac, p.next = mac, p.next+1
		p.began = true
		p.ended = rec.Kind == "end"
		r.add(rec)
	}
	silent := false // an earlier interpreter ended without a word
	for n, p := range chains {
		switch {
		case p.began && !p.ended:
			r.died = true
			r.tampered = append(r.tampered, "the interpreter was left without its exit handlers, or died, while results were recorded")
		case p.began && silent:
			r.tampered = append(r.tampered, "an interpreter reported after an earlier one had ended without a report")
		}
		if p.ended {
			r.ended++
		}
		silent = silent || !p.began && !outlived[n]
	}
	return r
}

func forged(how string) results {
	return results{tests: map[string]string{}, tampered: []string{"the file of test results " + how}}
}

// sign makes the MAC of interpreter n.
func (c channel) sign(n int, message string) string {
	mac := hmac.New(sha256.New, c.keys.Key(n))
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil))
}

func (r *results) add(rec record) {
	switch rec.Kind {
	case "plan":
		r.hooks = append(r.hooks, rec.Hooks...)
		r.planned = append(r.planned, rec.IDs...)
	case "start":
		r.running = rec.ID
	case "collect":
		r.uncollected = append(r.uncollected, rec.ID)
	case "test":
		if _, again := r.tests[rec.ID]; again {
			r.twice = append(r.twice, rec.ID)
		}
		r.tests[rec.ID] = rec.Status
		if rec.ID == r.running {
			r.running = ""
		}
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

// seconds converts a duration of the hooks, in microseconds.
func seconds(raw json.Number) (float64, bool) {
	n, err := raw.Int64()
	return float64(n) / 1e6, err == nil && n >= 0 && !strings.HasPrefix(raw.String(), "-")
}
