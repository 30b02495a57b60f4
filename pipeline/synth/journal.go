package synth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// journalName is the file in the output directory that makes a run resumable:
// the settings, then a line for each repository and each finished candidate.
const journalName = "journal.jsonl"

// entry is one line of the journal; exactly one field is set.
type entry struct {
	Settings   *settings    `json:"settings,omitempty"`
	Piece      *piece       `json:"piece,omitempty"`
	Unreliable *unreliable  `json:"unreliable,omitempty"`
	Forgery    *forgery     `json:"forgery,omitempty"`
	Repo       *survey      `json:"repo,omitempty"`
	Trial      *Trial       `json:"trial,omitempty"`
	Release    *release     `json:"release,omitempty"`
	Answer     *modelAnswer `json:"answer,omitempty"`
}

// journal appends lines and remembers those of earlier runs. It is safe for concurrent
// use.
type journal struct {
	mu       sync.Mutex
	file     *os.File
	pieces   map[string]map[string]*piece      // by repository and name
	doubts   map[string][]*unreliable          // by repository
	forged   map[string]map[string]*forgery    // by repository and kind
	surveys  map[string]*survey                // by repository
	trials   map[string]map[string]*Trial      // by repository and key
	releases map[string]map[string]release     // by repository and key
	answers  map[string]map[string]modelAnswer // by repository and key
}

// openJournal opens the journal in dir, or creates one with the settings.
func openJournal(dir string, s settings) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &OutError{fmt.Errorf("making the output directory: %w", err)}
	}
	j := &journal{
		surveys: map[string]*survey{}, trials: map[string]map[string]*Trial{}, releases: map[string]map[string]release{},
		answers: map[string]map[string]modelAnswer{}, pieces: map[string]map[string]*piece{},
		doubts: map[string][]*unreliable{}, forged: map[string]map[string]*forgery{},
	}
	path := filepath.Join(dir, journalName)
	whole, err := j.load(path, s)
	if err != nil {
		return nil, err
	}
	j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, &OutError{fmt.Errorf("opening the journal: %w", err)}
	}
	// Remove a partial last line of a killed run.
	err = j.file.Truncate(whole)
	if _, seek := j.file.Seek(whole, io.SeekStart); err == nil {
		err = seek
	}
	if err == nil && whole == 0 {
		err = j.put(entry{Settings: &s})
	}
	if err != nil {
		return nil, &OutError{errors.Join(fmt.Errorf("opening the journal: %w", err), j.file.Close())}
	}
	return j, nil
}

// load reads the complete lines and returns their length in bytes.
func (j *journal) load(path string, s settings) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, refuseForeign(filepath.Dir(path))
	}
	if err != nil {
		return 0, fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var whole int64
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, fmt.Errorf("reading the journal: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, fmt.Errorf("reading the journal: line %d of %s: %w: delete the line, or use another directory", n, path, err)
		}
		if n == 1 {
			if e.Settings == nil {
				return 0, fmt.Errorf("%s is not a journal of this command: use another directory", path)
			}
			if what := e.Settings.differs(s); what != "" {
				return 0, &UsedError{filepath.Dir(path), what}
			}
		}
		j.remember(e)
		whole += int64(len(line))
	}
}

// refuseForeign returns an error if the directory contains other files.
func refuseForeign(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the output directory: %w", err)
	}
	if len(list) > 0 {
		return &UsedError{dir, "it has no journal, but contains " + list[0].Name()}
	}
	return nil
}

func (j *journal) remember(e entry) {
	switch {
	case e.Piece != nil:
		if j.pieces[e.Piece.Repo] == nil {
			j.pieces[e.Piece.Repo] = map[string]*piece{}
		}
		j.pieces[e.Piece.Repo][e.Piece.Name] = e.Piece
	case e.Unreliable != nil:
		j.doubts[e.Unreliable.Repo] = append(j.doubts[e.Unreliable.Repo], e.Unreliable)
	case e.Forgery != nil:
		if j.forged[e.Forgery.Repo] == nil {
			j.forged[e.Forgery.Repo] = map[string]*forgery{}
		}
		j.forged[e.Forgery.Repo][e.Forgery.Kind] = e.Forgery
	case e.Repo != nil:
		j.surveys[e.Repo.Repo] = e.Repo
	case e.Trial != nil:
		if j.trials[e.Trial.Repo] == nil {
			j.trials[e.Trial.Repo] = map[string]*Trial{}
		}
		j.trials[e.Trial.Repo][e.Trial.Key] = e.Trial
	case e.Release != nil:
		if j.releases[e.Release.Repo] == nil {
			j.releases[e.Release.Repo] = map[string]release{}
		}
		j.releases[e.Release.Repo][e.Release.Key] = *e.Release
	case e.Answer != nil:
		if j.answers[e.Answer.Repo] == nil {
			j.answers[e.Answer.Repo] = map[string]modelAnswer{}
		}
		j.answers[e.Answer.Repo][e.Answer.Key] = *e.Answer
	}
}

// add writes one line before it returns.
func (j *journal) add(e entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.put(e); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.remember(e)
	return nil
}

func (j *journal) put(e entry) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := j.file.Write(line.Bytes())
	return err
}

// trial returns the result of a candidate in this or an earlier run; nil if none.
func (j *journal) trial(repo, key string) *Trial {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trials[repo][key]
}

// piece returns a finished part of a survey; nil if there is none.
func (j *journal) piece(repo, name string) *piece {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pieces[repo][name]
}

// unreliable returns the unreliable tests of a repository; those that release checks found only
// if asked.
func (j *journal) unreliable(repo string, releases bool) map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := map[string]bool{}
	for _, u := range j.doubts[repo] {
		for _, id := range u.Tests {
			out[id] = out[id] || releases || !u.Release
		}
	}
	return out
}

// forgery returns the result of a kind of patch that fixes nothing; nil if none was tried.
func (j *journal) forgery(repo, kind string) *forgery {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.forged[repo][kind]
}

func (j *journal) survey(repo string) *survey {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.surveys[repo]
}

func (j *journal) release(repo, key string) (release, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.releases[repo][key]
	return r, ok
}

// answer returns the model's answer in this or an earlier run.
func (j *journal) answer(repo, key string) (modelAnswer, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a, ok := j.answers[repo][key]
	return a, ok
}

func (j *journal) close() error { return j.file.Close() }

// drop removes the journal, and its directory if it is empty.
func (j *journal) drop() error {
	err := errors.Join(j.file.Close(), os.Remove(j.file.Name()))
	if left, reading := os.ReadDir(filepath.Dir(j.file.Name())); reading == nil && len(left) == 0 {
		err = errors.Join(err, os.Remove(filepath.Dir(j.file.Name())))
	}
	return err
}

// spent is what the answers in the journal have cost at most.
func (j *journal) spent() float64 {
	total := 0.0
	for _, answers := range j.answers {
		for _, a := range answers {
			total += a.Payment.Spent()
		}
	}
	return total
}
