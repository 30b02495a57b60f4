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

// entry is one line of the journal; one of the fields is set.
type entry struct {
	Settings *settings `json:"settings,omitempty"`
	Repo     *survey   `json:"repo,omitempty"`
	Trial    *Trial    `json:"trial,omitempty"`
	Release  *release  `json:"release,omitempty"`
	Answer   *spoken   `json:"answer,omitempty"`
}

// journal appends lines and remembers those of an earlier run. Safe for
// concurrent use.
type journal struct {
	mu       sync.Mutex
	file     *os.File
	surveys  map[string]*survey            // by repository
	trials   map[string]map[string]*Trial  // by repository and key
	releases map[string]map[string]release // by repository and key
	answers  map[string]map[string]spoken  // by repository and key
}

// openJournal opens the journal in dir, or begins one with the settings.
func openJournal(dir string, s settings) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &OutError{fmt.Errorf("making the output directory: %w", err)}
	}
	j := &journal{
		surveys: map[string]*survey{}, trials: map[string]map[string]*Trial{}, releases: map[string]map[string]release{},
		answers: map[string]map[string]spoken{},
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
	// What a killed run wrote of its last line goes.
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

// load reads the whole lines there are and returns their length in bytes.
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
			return 0, fmt.Errorf("reading the journal: line %d of %s: %w: take the line away, or name another directory", n, path, err)
		}
		if n == 1 {
			if e.Settings == nil {
				return 0, fmt.Errorf("%s is no journal of this command: name another directory", path)
			}
			if what := e.Settings.differs(s); what != "" {
				return 0, &UsedError{filepath.Dir(path), what}
			}
		}
		j.remember(e)
		whole += int64(len(line))
	}
}

// refuseForeign keeps the factory from mixing its files with those of others.
func refuseForeign(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the output directory: %w", err)
	}
	if len(list) > 0 {
		return &UsedError{dir, "it has no journal, but holds " + list[0].Name()}
	}
	return nil
}

func (j *journal) remember(e entry) {
	switch {
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
			j.answers[e.Answer.Repo] = map[string]spoken{}
		}
		j.answers[e.Answer.Repo][e.Answer.Key] = *e.Answer
	}
}

// add writes one line; it is there once add has returned.
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

// trial is what an earlier run found of a candidate, nil if none did.
func (j *journal) trial(repo, key string) *Trial {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trials[repo][key]
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

// answer is what a model has said in this run or an earlier one.
func (j *journal) answer(repo, key string) (spoken, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a, ok := j.answers[repo][key]
	return a, ok
}

func (j *journal) close() error { return j.file.Close() }

// drop takes the journal away, and its directory where nothing else is in it.
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
