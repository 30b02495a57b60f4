package pipeline

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// A run directory holds:
//
//	run.json       what the run is, written once
//	run.lock       held while a process uses the directory
//	engine/        private working data: queue, records, step logs
//	wire/          private working data: what was said to model servers, byte for byte
//	staging/       one object per finished episode
//	status.json    how the run stands, replaced whenever that changes
//	summary.json   the last invocation's report; summary.md the same for people
//	dead-letters.jsonl  jobs that were given up, if any

const runFile = "run.json"

// RunInfo is the content of run.json.
type RunInfo struct {
	SchemaVersion string            `json:"schema_version"` // of this file
	RunID         string            `json:"run_id"`
	CreatedAt     time.Time         `json:"created_at"`
	Key           string            `json:"key,omitempty"` // random: names this directory, wherever it is seen
	Producer      string            `json:"producer,omitempty"`
	Staging       string            `json:"staging,omitempty"` // "": in this directory
	Identity      map[string]string `json:"identity"`
	Config        json.RawMessage   `json:"config,omitempty"`
}

// ReadRunInfo reads run.json of a run directory.
func ReadRunInfo(dir string) (RunInfo, error) {
	var info RunInfo
	raw, err := os.ReadFile(filepath.Join(dir, runFile))
	if err != nil {
		return info, fmt.Errorf("reading run directory: %w", err)
	}
	err = json.Unmarshal(raw, &info)
	if err == nil && info.RunID == "" {
		err = errors.New("it has no run_id")
	}
	if err != nil {
		return info, &StopError{Code: 2, Err: fmt.Errorf("%s: not a run description: %w", filepath.Join(dir, runFile), err), Remedy: "choose another --run-dir, or put the file back as it was"}
	}
	return info, nil
}

// openRunDir locks the directory and makes sure that it is new or holds the
// same run. Nothing in a foreign directory is touched.
func openRunDir(cfg Config, tasks string, now time.Time) (*engine.Lock, RunInfo, error) {
	info, lock, err := RunInfo{}, (*engine.Lock)(nil), error(nil)
	if err := unusable(prepare(cfg.RunDir)); err != nil {
		return nil, info, err
	}
	if lock, err = engine.LockDir(cfg.RunDir); err != nil {
		return nil, info, unusable(err)
	}
	if cfg.Fresh {
		if lock, err = moveAside(lock); err != nil {
			return nil, info, unusable(err)
		}
	}
	identity := maps.Clone(cfg.Identity)
	if identity == nil {
		identity = map[string]string{}
	}
	identity["tasks"], identity["schema"] = tasks, schemas.SchemaVersion
	info, err = ReadRunInfo(cfg.RunDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, err = createRunInfo(cfg, identity, now)
	case err == nil:
		err = sameRun(cfg, info, identity)
	}
	if err != nil {
		return nil, info, errors.Join(unusable(err), lock.Close())
	}
	return lock, info, nil
}

// prepare makes the directory and refuses one that holds something else.
func prepare(dir string) error {
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("creating run directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading run directory: %w", err)
	}
	ours := func(e os.DirEntry) bool { return e.Name() == engine.LockFile || strings.HasPrefix(e.Name(), runFile) }
	if len(entries) == 0 || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == runFile }) {
		return nil
	}
	if i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return !ours(e) }); i >= 0 {
		return &StopError{
			Code: 2, Err: fmt.Errorf("%s is not a run directory and not empty (it holds %s)", dir, entries[i].Name()),
			Remedy: "choose another --run-dir",
		}
	}
	return nil
}

// moveAside renames a used directory to the first free NAME.n and locks a new
// empty one.
func moveAside(lock *engine.Lock) (*engine.Lock, error) {
	dir := filepath.Clean(lock.Dir())
	if _, err := os.Lstat(filepath.Join(dir, runFile)); errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.%d", dir, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(dir, aside); err != nil {
			return nil, errors.Join(fmt.Errorf("moving the used run directory aside: %w", err), lock.Close())
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		break
	}
	if err := lock.Close(); err != nil {
		return nil, fmt.Errorf("unlocking the old run directory: %w", err)
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	return engine.LockDir(dir)
}

func createRunInfo(cfg Config, identity map[string]string, now time.Time) (RunInfo, error) {
	info := RunInfo{
		SchemaVersion: "1", RunID: cfg.RunID, CreatedAt: now.UTC(), Key: rand.Text(), Producer: cfg.Normalise.Producer, Staging: cfg.Staging, Identity: identity, Config: cfg.Resolved,
	}
	if info.RunID == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		info.RunID = now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
	}
	body, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return info, fmt.Errorf("encoding %s: %w", runFile, err)
	}
	return info, writeNew(filepath.Join(cfg.RunDir, runFile), append(body, '\n'))
}

// sameRun compares what must not change.
func sameRun(cfg Config, have RunInfo, identity map[string]string) error {
	var diff []string
	if cfg.RunID != "" && cfg.RunID != have.RunID {
		diff = append(diff, fmt.Sprintf("run_id: %s -> %s", have.RunID, cfg.RunID))
	}
	if cfg.Staging != have.Staging {
		diff = append(diff, fmt.Sprintf("staging: %s -> %s", cmp.Or(have.Staging, "the run directory"), cmp.Or(cfg.Staging, "the run directory")))
	}
	names := slices.Sorted(maps.Keys(have.Identity))
	for name := range identity {
		if _, ok := have.Identity[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if old, now := have.Identity[name], identity[name]; old != now {
			diff = append(diff, fmt.Sprintf("%s: %s -> %s", name, old, now))
		}
	}
	if len(diff) == 0 {
		return nil
	}
	return &StopError{
		Code: 2, Err: fmt.Errorf("%s holds another run: %s", cfg.RunDir, strings.Join(diff, "; ")),
		Remedy: "choose another --run-dir, or --fresh to move the old run aside",
	}
}

// writeNew writes a file that must not exist, all or nothing.
func writeNew(path string, body []byte) error {
	tmp := path + ".tmp"
	if err := writeSynced(tmp, body); err != nil {
		return err
	}
	if err := os.Link(tmp, path); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	return errors.Join(os.Remove(tmp), syncDir(filepath.Dir(path)))
}

// replaceFile writes a file that may exist, all or nothing.
func replaceFile(path string, body []byte) error {
	if err := writeSynced(path+".tmp", body); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("replacing %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// makeDir makes a directory and its parents, each name on disk.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// syncDir makes the names in a directory outlive a power cut: a synced file
// whose name is lost is lost.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	return nil
}

func writeSynced(path string, body []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// unusable gives errors of the directory the exit code of an unusable output.
func unusable(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[fatal](err); ok {
		return err
	}
	return &StopError{Code: 2, Err: err, Remedy: "choose a --run-dir that can be written"}
}
