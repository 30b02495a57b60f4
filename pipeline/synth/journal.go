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

	"golang.org/x/sys/unix"
)

// journalName is the file in the output directory that makes a run resumable. Its first
// line has the settings. Every further line is the result of one job, or has changed settings.
const journalName = "journal.jsonl"

// entry is one line of the journal; exactly one field is set.
type entry struct {
	Settings   *settings    `json:"settings,omitempty"`
	SurveyPart *surveyPart  `json:"piece,omitempty"`
	Unreliable *unreliable  `json:"unreliable,omitempty"`
	Forgery    *forgery     `json:"forgery,omitempty"`
	Repo       *survey      `json:"repo,omitempty"`
	Trial      *Trial       `json:"trial,omitempty"`
	Release    *release     `json:"release,omitempty"`
	Answer     *modelAnswer `json:"answer,omitempty"`
	Overhead   *overhead    `json:"overhead,omitempty"`
}

// cpu returns the seconds of CPU time that an entry records for the first time.
func (e entry) cpu() float64 {
	switch {
	case e.SurveyPart != nil:
		return e.SurveyPart.CPU
	case e.Trial != nil:
		return e.Trial.CPU
	case e.Release != nil:
		return e.Release.CPU
	case e.Forgery != nil:
		return e.Forgery.CPU
	}
	return 0
}

// journal appends entries to the journal file and keeps all entries, including those of
// earlier runs, in memory. It is safe for concurrent use.
type journal struct {
	mu              sync.Mutex
	file            *os.File
	tasks           int                               // settings.Tasks of the latest run
	parts           map[string]map[string]*surveyPart // by repository and name
	unreliableTests map[string][]*unreliable          // by repository
	forgeries       map[string]map[string]*forgery    // by repository and kind
	surveys         map[string]*survey                // by repository
	trials          map[string]map[string]*Trial      // by repository and key
	releases        map[string]map[string]release     // by repository and key
	answers         map[string]map[string]modelAnswer // by repository and key
	overhead        float64                           // seconds of CPU time, see overhead
	added           float64                           // seconds of CPU time of the entries that this run has added
}

// openJournal opens the journal in dir, or creates one with the settings. It returns
// an OutputDirInUseError if dir belongs to a run with other settings, and an OutputDirError if
// dir cannot be written.
func openJournal(dir string, s settings) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &OutputDirError{fmt.Errorf("making the output directory: %w", err)}
	}
	j := &journal{
		surveys: map[string]*survey{}, trials: map[string]map[string]*Trial{}, releases: map[string]map[string]release{},
		answers: map[string]map[string]modelAnswer{}, parts: map[string]map[string]*surveyPart{},
		unreliableTests: map[string][]*unreliable{}, forgeries: map[string]map[string]*forgery{},
	}
	path := filepath.Join(dir, journalName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := CheckOut(dir); err != nil {
			return nil, err
		}
	}
	var err error
	j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, &OutputDirError{fmt.Errorf("opening the journal: %w", err)}
	}
	// A run that was interrupted may still be writing its last entries.
	if err := unix.Flock(int(j.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &OutputDirError{errors.Join(fmt.Errorf("another process is writing %s: wait until it has ended", path), j.file.Close())}
	}
	size, err := j.load(path, s)
	if err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	// Remove the partial last line that a killed run may have left.
	err = j.file.Truncate(size)
	if _, seekErr := j.file.Seek(size, io.SeekStart); err == nil {
		err = seekErr
	}
	if err == nil && (size == 0 || j.tasks != s.Tasks) {
		err = j.write(entry{Settings: &s})
	}
	if err != nil {
		return nil, &OutputDirError{errors.Join(fmt.Errorf("opening the journal: %w", err), j.file.Close())}
	}
	return j, nil
}

// load reads the complete lines and returns their total size in bytes.
func (j *journal) load(path string, s settings) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var size int64
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, nil
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
			if what := e.Settings.difference(s); what != "" {
				return 0, &OutputDirInUseError{filepath.Dir(path), what}
			}
		}
		j.remember(e)
		size += int64(len(line))
	}
}

// TasksOf returns Config.Tasks of the latest run in a directory; 0 if there is none.
func TasksOf(dir string) (int, error) {
	f, err := os.Open(filepath.Join(dir, journalName))
	if err != nil {
		return 0, fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	in, tasks := bufio.NewReaderSize(f, 1<<20), 0
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return tasks, nil
		}
		var e entry
		if err == nil && bytes.HasPrefix(line, []byte(`{"settings":`)) {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return 0, fmt.Errorf("reading the journal: %w", err)
		}
		if e.Settings != nil {
			tasks = e.Settings.Tasks
		}
	}
}

// SetupsDir is the directory below Config.Out in which a caller may keep the setups of the repositories.
const SetupsDir = "setups"

// CheckOut returns an OutputDirInUseError if a directory has no journal but contains files other than SetupsDir.
func CheckOut(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the output directory: %w", err)
	}
	foreign := ""
	for _, e := range list {
		switch e.Name() {
		case journalName:
			return nil
		case SetupsDir:
		default:
			foreign = e.Name()
		}
	}
	if foreign != "" {
		return &OutputDirInUseError{dir, "it has no journal, but contains " + foreign}
	}
	return nil
}

// remember adds an entry to the maps. The caller holds the lock or is the only user.
func (j *journal) remember(e entry) {
	switch {
	case e.Settings != nil:
		j.tasks = e.Settings.Tasks
	case e.SurveyPart != nil:
		if j.parts[e.SurveyPart.Repo] == nil {
			j.parts[e.SurveyPart.Repo] = map[string]*surveyPart{}
		}
		j.parts[e.SurveyPart.Repo][e.SurveyPart.Name] = e.SurveyPart
	case e.Unreliable != nil:
		j.unreliableTests[e.Unreliable.Repo] = append(j.unreliableTests[e.Unreliable.Repo], e.Unreliable)
	case e.Forgery != nil:
		if j.forgeries[e.Forgery.Repo] == nil {
			j.forgeries[e.Forgery.Repo] = map[string]*forgery{}
		}
		j.forgeries[e.Forgery.Repo][e.Forgery.Kind] = e.Forgery
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
	case e.Overhead != nil:
		j.overhead += e.Overhead.CPU
	}
}

// add appends an entry. The line is written when add returns.
func (j *journal) add(e entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.write(e); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.remember(e)
	j.added += e.cpu()
	return nil
}

// write appends the line of an entry to the file.
func (j *journal) write(e entry) error {
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

// part returns a finished part of a survey; nil if there is none.
func (j *journal) part(repo, name string) *surveyPart {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.parts[repo][name]
}

// unreliable returns the unreliable tests of a repository. Those that release checks found are
// included only if includeRelease is true.
func (j *journal) unreliable(repo string, includeRelease bool) map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := map[string]bool{}
	for _, u := range j.unreliableTests[repo] {
		for _, id := range u.Tests {
			out[id] = out[id] || includeRelease || !u.Release
		}
	}
	return out
}

// forgery returns the result of a kind of cheating patch; nil if it has not been tried.
func (j *journal) forgery(repo, kind string) *forgery {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.forgeries[repo][kind]
}

// survey returns the finished survey of a repository; nil if there is none.
func (j *journal) survey(repo string) *survey {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.surveys[repo]
}

// release returns the result of the release checks of a candidate, in this or an earlier run.
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

// remove closes and deletes the journal, and its directory if that is empty.
func (j *journal) remove() error {
	err := errors.Join(j.file.Close(), os.Remove(j.file.Name()))
	if files, readErr := os.ReadDir(filepath.Dir(j.file.Name())); readErr == nil && len(files) == 0 {
		err = errors.Join(err, os.Remove(filepath.Dir(j.file.Name())))
	}
	return err
}

// spent returns the most that the answers in the journal can have cost, in USD.
func (j *journal) spent() float64 {
	total := 0.0
	for _, answers := range j.answers {
		for _, a := range answers {
			total += a.Payment.Spent()
		}
	}
	return total
}
