package rundir

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const infoFile = "run.json"

// Options describes the run for which a directory is opened.
type Options struct {
	Path     string
	RunID    string            // "": the ID that the directory has already, or a new one
	Fresh    bool              // move a used directory aside
	Staging  string            // "": in the directory
	Identity map[string]string // must not change when the directory is opened again
	Plan     Plan
	Config   json.RawMessage // without secrets
	Producer string
	Now      time.Time
}

// Info is the content of run.json.
type Info struct {
	SchemaVersion string            `json:"schema_version"` // of this file
	RunID         string            `json:"run_id"`
	CreatedAt     time.Time         `json:"created_at"`
	Key           string            `json:"key,omitempty"` // random; identifies the directory even if it is moved
	Producer      string            `json:"producer,omitempty"`
	Staging       string            `json:"staging,omitempty"` // "": in this directory
	Identity      map[string]string `json:"identity"`
	Config        json.RawMessage   `json:"config,omitempty"`
}

// ReadInfo reads run.json of a run directory.
func ReadInfo(dir string) (Info, error) {
	var info Info
	raw, err := os.ReadFile(filepath.Join(dir, infoFile))
	if err != nil {
		return info, fmt.Errorf("reading run directory: %w", err)
	}
	err = json.Unmarshal(raw, &info)
	if err == nil && info.RunID == "" {
		err = errors.New("run_id is missing")
	}
	if err != nil {
		return info, &Error{Err: fmt.Errorf("%s: not a run description: %w", filepath.Join(dir, infoFile), err), Remedy: "choose another --run-dir, or restore the file"}
	}
	return info, nil
}

func createInfo(opt Options, identity map[string]string) (Info, error) {
	info := Info{
		SchemaVersion: "1", RunID: opt.RunID, CreatedAt: opt.Now.UTC(), Key: rand.Text(), Producer: opt.Producer,
		Staging: opt.Staging, Identity: identity, Config: opt.Config,
	}
	if info.RunID == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		info.RunID = opt.Now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
	}
	body, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return info, fmt.Errorf("encoding %s: %w", infoFile, err)
	}
	return info, writeNew(filepath.Join(opt.Path, infoFile), append(body, '\n'))
}

// compare returns an error if the run of the directory differs from opt and identity in anything
// that must not change.
func compare(opt Options, have Info, identity map[string]string) error {
	var diff []string
	if opt.RunID != "" && opt.RunID != have.RunID {
		diff = append(diff, fmt.Sprintf("run_id: %s -> %s", have.RunID, opt.RunID))
	}
	if opt.Staging != have.Staging {
		diff = append(diff, fmt.Sprintf("staging: %s -> %s", cmp.Or(have.Staging, "the run directory"), cmp.Or(opt.Staging, "the run directory")))
	}
	names := slices.Sorted(maps.Keys(have.Identity))
	names = slices.DeleteFunc(names, func(name string) bool { return name == legacyTasks })
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
	return &Error{
		Err:    fmt.Errorf("%s holds another run: %s", opt.Path, strings.Join(diff, "; ")),
		Remedy: "choose another --run-dir, or --fresh to move the old run aside",
	}
}
