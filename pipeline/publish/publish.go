// Package publish turns staged episodes into a dataset version: select, sort,
// shards, verify, upload, and last of all the manifest, which is the commit.
// Everything a version holds is a function of the staged bytes, the recipe and
// the producer, so a repeated or concurrent publish writes the same objects and
// a killed one is completed by running it again.
//
// layout.go says where the files lie.
//
// It imports schemas, sinks (formats and shard below it), pipeline/selection and
// env/tasks/provenance;
// stores are given to it.
package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// cutVersion is part of every derived version: raise it when publishing the same
// inputs would write other bytes.
const cutVersion = 3

// textVersion is part of it, too: raise it when card, reports or figures change.
const textVersion = 10

// Config says what to publish where.
type Config struct {
	Staging []sinks.Store // run dirs: episodes are read from staging/ below each
	Dest    sinks.Store   // the dataset's root
	Name    string        // of the dataset
	// Selection is a recipe or a selection file; nil: selection.Default.
	Selection selection.Selector
	// Benchmarks are compared with what is published: reports/contamination.json.
	// nil: only the lists of repositories are.
	Benchmarks *provenance.Comparison
	Imported   string             // the format of what import has read, for the card; "": runs
	Secrets    *redact.Known      // exact values that must not get out, beside what looks like a secret
	Producer   string             // version of this program, recorded in every file
	Scratch    string             // directory for shards before upload; "": the system's
	MaxShard   int64              // bytes of values per shard; 0: shard.MaxBytes
	Lease      time.Duration      // how long another publisher may be silent before it counts as dead; 0: 30 s
	Progress   func(stage string) // told about each stage; may be nil
}

// Report says what a publish did.
type Report struct {
	URI      string               `json:"uri"` // of the dataset: the directory that loaders read
	Dataset  string               `json:"dataset"`
	Version  string               `json:"version"`
	Already  bool                 `json:"already_published"` // the manifest was there: nothing was written but the pointer
	Episodes int                  `json:"episodes"`
	Steps    int64                `json:"steps"`
	Kept     int                  `json:"kept"`
	KeptGold int                  `json:"kept_gold_used,omitempty"` // of a policy that could see the gold patch
	Held     int                  `json:"held_back,omitempty"`      // episodes that still hold a secret: not published
	Files    int                  `json:"files"`
	Uploaded int                  `json:"uploaded"` // files sent by this call
	Copied   int                  `json:"copied"`   // files that the store copied from the latest version; the others were there
	Bytes    int64                `json:"bytes"`    // of all files
	Funnel   []schemas.FunnelStep `json:"funnel"`
}

// ErrEmpty: there is nothing staged to publish.
var ErrEmpty = errors.New("no staged episodes")

// ErrName: a dataset cannot be called so.
var ErrName = errors.New("name of the dataset")

// ErrSchemas: the staged episodes are of two major schema versions, or of one that
// this program does not know.
var ErrSchemas = errors.New("the records cannot be published")

// ErrDamaged: a staged object is not what a run has written.
var ErrDamaged = errors.New("a staged episode is damaged")

// ErrOccupied: the destination holds something that is not this dataset.
var ErrOccupied = errors.New("destination is occupied")

// ErrConflict: an object of this version is there with other content.
var ErrConflict = errors.New("something else wrote there")

// Publish writes one version of a dataset, points latest.json at it and puts its
// files at the root. Nothing of an earlier version is overwritten. Publishers of one
// place take turns; each can be killed anywhere.
func Publish(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	cfg.tell("reading staging")
	in, err := readStaging(ctx, cfg.Staging, redact.NewChecker(cfg.Secrets), cfg.Benchmarks, cfg.Scratch)
	if err != nil {
		return Report{}, err
	}
	defer in.rows.close()
	p := &publication{cfg: cfg, in: in, version: in.version(cfg)}
	ours, err := Look(ctx, cfg.Dest, cfg.Name)
	if err != nil {
		return Report{}, err
	}
	if ours {
		m, done, err := p.published(ctx)
		if done = done && err == nil && p.isLatest(ctx, m); done {
			done, err = p.exposed(ctx, m)
		}
		if err != nil || done {
			return p.report(m, done), err
		}
	}
	cfg.tell("selecting")
	if p.sel, err = cfg.Selection.Apply(ctx, in.source); err != nil { // before anything is written
		return Report{}, err
	}
	if err := claim(ctx, cfg.Dest, cfg.Name); err != nil {
		return Report{}, err
	}
	held, lease, err := p.acquire(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lease.release(ctx)
	m, already, err := p.turn(held)
	if err != nil {
		if errors.Is(context.Cause(held), ErrLeaseLost) {
			err = fmt.Errorf("%w: %w", context.Cause(held), err)
		}
		return Report{}, err
	}
	return p.report(m, already), nil
}

// turn does what is left to do, while no other publisher is at it.
func (p *publication) turn(ctx context.Context) (m schemas.Manifest, already bool, err error) {
	if p.latest, err = p.pointer(ctx); err != nil {
		return m, false, err
	}
	m, already, err = p.published(ctx)
	if err == nil && !already {
		m, err = p.write(ctx)
	}
	if err != nil {
		return m, false, err
	}
	if err := p.point(ctx, m); err != nil {
		return m, false, err
	}
	p.cfg.tell("putting the version at the root")
	return m, already, p.expose(ctx, m)
}

func (c *Config) check() error {
	switch {
	case len(c.Staging) == 0:
		return errors.New("publishing: no run directory given: name at least one")
	case c.Producer == "":
		return errors.New("publishing: no producer version given")
	}
	if err := checkName(c.Name); err != nil {
		return err
	}
	if c.Selection == nil {
		s, err := selection.Load(selection.Default)
		if err != nil {
			return err
		}
		c.Selection = s
	}
	return nil
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\\n\x00") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%w %q: want one word without slashes that begins with no dot", ErrName, name)
	}
	return nil
}

func (c *Config) tell(stage string) {
	if c.Progress != nil {
		c.Progress(stage)
	}
}

// publication is one version being written.
type publication struct {
	cfg      Config
	in       *inputs
	sel      selection.Result
	version  string
	latest   []byte // latest.json as it was when this publisher's turn began; nil: none
	scratch  string
	uploaded int
	copied   int
	prior    map[string]string // SHA-256 of the latest version's files -> key
}

// key places a file of the version in the store.
func (p *publication) key(rel string) string { return keyBelow(versionBase(p.version), rel) }

// write makes and uploads every file, then commits.
func (p *publication) write(ctx context.Context) (schemas.Manifest, error) {
	var none schemas.Manifest
	scratch, err := os.MkdirTemp(p.cfg.Scratch, "tracesmith-publish-")
	if err != nil {
		return none, fmt.Errorf("making a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	p.scratch = scratch
	p.cfg.tell("writing shards")
	files, tally, err := p.writeTables(ctx, p.sel)
	if err != nil {
		return none, err
	}
	m := p.manifest(p.sel, tally, files)
	texts, err := p.texts(m, tally)
	if err != nil {
		return none, err
	}
	p.cfg.tell("uploading")
	p.lookBack(ctx)
	for _, f := range files {
		if err := p.upload(ctx, f); err != nil {
			return none, err
		}
	}
	for _, t := range texts {
		if err := p.uploadText(ctx, t); err != nil {
			return none, err
		}
		m.Files = append(m.Files, t.entry())
	}
	m.Seal()
	p.cfg.tell("checking")
	if err := p.checkListing(ctx, m); err != nil {
		return none, err
	}
	p.cfg.tell("committing")
	return m, p.commit(ctx, m)
}

func (p *publication) manifest(sel selection.Result, t *Tally, files []builtFile) schemas.Manifest {
	m := schemas.Manifest{
		ManifestVersion: manifestVersion, Dataset: p.cfg.Name, Version: p.version, Schemas: map[string]string{},
		Producer: schemas.Producer{Name: "tracesmith", Version: p.cfg.Producer, Parquet: formats.ParquetWriter},
		Checks:   map[string]string{"contamination": contaminationPath, "redaction": redactionPath},
		Inputs:   t.inputs(), Runs: t.runs(), Split: t.split(), Selection: &sel.Info,
		Totals: schemas.ManifestTotals{Episodes: t.stats.Episodes, Steps: t.stats.Steps, Kept: len(sel.Kept), CostUSD: t.stats.CostUSD, DeadLetters: len(p.in.dead)},
	}
	if m.Totals.CostUSD != nil && m.Totals.Kept > 0 {
		m.Totals.CostPerKept = new(*m.Totals.CostUSD / float64(m.Totals.Kept))
	}
	for _, f := range files {
		m.Schemas[f.entry.Table] = p.in.schema
		m.Files = append(m.Files, f.entry)
	}
	return m
}

func (p *publication) report(m schemas.Manifest, already bool) Report {
	r := Report{
		Already: already,
		URI:     p.cfg.Dest.URI(), Dataset: m.Dataset, Version: m.Version, Episodes: m.Totals.Episodes,
		Steps: m.Totals.Steps, Kept: m.Totals.Kept, Files: len(m.Files), Uploaded: p.uploaded, Copied: p.copied, Held: p.in.held,
	}
	if m.Selection != nil {
		r.KeptGold = m.Selection.KeptGold
		r.Funnel = m.Selection.Funnel
	}
	for _, f := range m.Files {
		r.Bytes += f.Bytes
	}
	return r
}
