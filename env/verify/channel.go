package verify

import (
	"archive/zip"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// channel carries the results of one test run out of the sandbox: interpreters append records to a file
// in dir and sign them with keys. The guest gives the n-th key to the n-th interpreter that the
// entrypoint starts, and gives no key to processes that an interpreter starts.
type channel struct {
	dir  string // in the sandbox; its base name is the name of the guest's socket for keys
	keys env.Keys
}

func newChannel(tempDir string) channel {
	var secret [48]byte
	rand.Read(secret[:]) // never fails
	name := "tracesmith-" + hex.EncodeToString(secret[:16])
	return channel{path.Join(tempDir, "."+name), env.Keys{Name: "." + name, Secret: secret[16:]}}
}

// hooksPath is the path at which interpreters find the hooks, the command's sealed file.
var hooksPath = fmt.Sprintf("/proc/self/fd/%d", env.SealedFile)

// hooksArchive returns the content of the sealed file: a zip archive of the hooks and their configuration.
// compiled comes from compileHooks.
func (c channel) hooksArchive(workdir string, variant Variant, compiled []byte) ([]byte, error) {
	files, err := hookSources()
	if err != nil {
		return nil, err
	}
	files["compiled"] = compiled
	config := variant.config()
	config["workdir"] = workdir
	if files["config.json"], err = json.Marshal(config); err != nil {
		return nil, err
	}
	if variant.Probe != nil {
		files["tracesmith_probe.py"] = []byte(variant.Probe.Source)
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

// launcher adds the hooks to PYTHONPATH and runs the task's command line. If the user's site directory
// does not exist yet, launcher disables it, because interpreters would run files that a program creates
// there before they run the hooks.
const launcher = `export TRACESMITH_CHANNEL="$1" PYTHONPATH="$2${PYTHONPATH:+:$PYTHONPATH}"
[ -e "$HOME/.local/lib" ] || [ -n "$PYTHONNOUSERSITE" ] || export PYTHONNOUSERSITE=tracesmith
exec bash -c "$3"`

var ownPythonPath = regexp.MustCompile(`\bPYTHONPATH=(["']?)`)

// args returns the command that runs entrypoint with the hooks. If entrypoint sets PYTHONPATH itself,
// args inserts the hooks there as well.
func (c channel) args(entrypoint string) []string {
	entrypoint = ownPythonPath.ReplaceAllString(entrypoint, "PYTHONPATH=${1}"+hooksPath+":")
	return []string{"bash", "-c", launcher, "tracesmith", c.dir, hooksPath, entrypoint}
}

// record is one line that the hooks write (python/tracesmith_channel.py).
type record struct {
	Kind   string          `json:"k"` // begin, runner, plan, collect, start, test, found, seen, end
	ID     string          `json:"id"`
	Status string          `json:"s"`
	Took   json.Number     `json:"us"`     // test: microseconds that the test function took
	Doc    string          `json:"doc"`    // test: first line of its docstring (unittest)
	Hooks  []string        `json:"hooks"`  // plan: workspace files that implement hooks of the runner
	IDs    []string        `json:"ids"`    // plan: the tests that will run
	What   json.RawMessage `json:"what"`   // found: a sentence; seen: a watched event and the file that caused it
	Active bool            `json:"active"` // end: a test runner ran in this interpreter
	Exit   *int            `json:"status"` // end: the exit status that the runner reported
}

// results are the merged records of all interpreters of one run.
type results struct {
	tests       map[string]string // id -> passed, failed, error, skipped, xfailed, xpassed
	seconds     map[string]float64
	docs        map[string]string // id -> first line of its docstring
	duplicates  []string          // ids reported more than once
	uncollected []string          // ids of files and classes that the runner could not collect
	planned     []string          // ids of the tests that were going to run
	running     string            // id of the test that started and has no result, "" if there is none
	died        bool              // an interpreter ended without running its exit handlers
	hookFiles   []string          // workspace files that implement hooks of the runner
	events      [][2]string       // watched events and the files that caused them
	tampered    []string          // reasons not to trust the records
	unfinished  bool              // a runner ended without reporting an exit status
	runners     int               // interpreters in which a test runner ran
	ended       int               // interpreters that ran their exit handlers
	exit        int               // worst exit status of the runners
}

// recordChain is the state of reading the records of one interpreter, which form a chain of MACs.
type recordChain struct {
	mac   string
	next  int
	began bool
	ended bool
}

// read checks the MACs and merges the records. outlived is env.Result.Keys. read reports an invalid
// record in tampered and not as an error, because the program can write to the file.
func (c channel) read(raw []byte, outlived []bool) results {
	r := results{tests: map[string]string{}, seconds: map[string]float64{}, docs: map[string]string{}}
	chains := make([]recordChain, len(outlived))
	for line := range strings.Lines(string(raw)) {
		mac, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		fields := strings.SplitN(body, " ", 3)
		n, err := strconv.Atoi(fields[0])
		var rec record
		if len(fields) != 3 || err != nil || n < 0 || n >= len(chains) || !strings.HasSuffix(line, "\n") ||
			json.Unmarshal([]byte(fields[2]), &rec) != nil {
			return tamperedResults("contains a line that is not a record")
		}
		p := &chains[n]
		if !hmac.Equal([]byte(mac), []byte(c.sign(n, p.mac+" "+body))) || fields[1] != strconv.Itoa(p.next) || p.ended {
			return tamperedResults("was changed or forged")
		}
		p.mac, p.next = mac, p.next+1
		p.began = true
		p.ended = rec.Kind == "end"
		r.add(rec)
	}
	silent := false // an earlier interpreter ended without a record
	for n, p := range chains {
		switch {
		case p.began && !p.ended:
			r.died = true
			r.tampered = append(r.tampered, "an interpreter died or ended without running its exit handlers while results were recorded")
		case p.began && silent:
			r.tampered = append(r.tampered, "an interpreter reported results after an earlier one had ended without reporting any")
		}
		if p.ended {
			r.ended++
		}
		silent = silent || !p.began && !outlived[n]
	}
	return r
}

// tamperedResults returns results without tests. problem says what is wrong with the file of records.
func tamperedResults(problem string) results {
	return results{tests: map[string]string{}, tampered: []string{"the file of test results " + problem}}
}

// sign returns the MAC of a message of interpreter n.
func (c channel) sign(n int, message string) string {
	mac := hmac.New(sha256.New, c.keys.Key(n))
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil))
}

func (r *results) add(rec record) {
	switch rec.Kind {
	case "plan":
		r.hookFiles = append(r.hookFiles, rec.Hooks...)
		r.planned = append(r.planned, rec.IDs...)
	case "start":
		r.running = rec.ID
	case "collect":
		r.uncollected = append(r.uncollected, rec.ID)
	case "test":
		if _, again := r.tests[rec.ID]; again {
			r.duplicates = append(r.duplicates, rec.ID)
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
			r.events = append(r.events, what)
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

// seconds converts a duration in microseconds. ok is false if raw is not a duration.
func seconds(raw json.Number) (s float64, ok bool) {
	n, err := raw.Int64()
	return float64(n) / 1e6, err == nil && n >= 0 && !strings.HasPrefix(raw.String(), "-")
}
