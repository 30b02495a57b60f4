package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// Report is the result of a publish.
type Report struct {
	URI              string               `json:"uri"` // of the dataset's root
	Dataset          string               `json:"dataset"`
	Version          string               `json:"version"`
	Replaced         string               `json:"replaced,omitempty"` // the version that was the latest one before
	AlreadyPublished bool                 `json:"already_published"`  // the version existed; at most latest.json and the root were written
	Episodes         int                  `json:"episodes"`
	Steps            int64                `json:"steps"`
	Kept             int                  `json:"kept"`
	KeptGold         int                  `json:"kept_gold_used,omitempty"` // by policies that could see the gold patch
	Withheld         int                  `json:"held_back,omitempty"`      // episodes withheld because of a possible secret
	Files            int                  `json:"files"`
	Uploaded         int                  `json:"uploaded"` // files uploaded by this call
	Copied           int                  `json:"copied"`   // files that the store copied from the latest version; all other files existed
	Bytes            int64                `json:"bytes"`    // of all files
	Funnel           []schemas.FunnelStep `json:"funnel"`
}

// Publish writes one version of a dataset, points latest.json at it and copies its files
// to the root. It does not change earlier versions. Concurrent publishers of one dataset
// take turns. If a publisher is killed, the next call completes its work.
func Publish(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	cfg.reportStage("reading staging")
	in, err := readStaging(ctx, cfg.Staging, redact.NewChecker(cfg.Secrets), cfg.Benchmarks, cfg.Scratch)
	if err != nil {
		return Report{}, err
	}
	defer in.rows.close()
	p := &publication{cfg: cfg, in: in, version: in.version(cfg)}
	exists, err := ContainsDataset(ctx, cfg.Dest, cfg.Name)
	if err != nil {
		return Report{}, err
	}
	if exists {
		m, done, err := p.findManifest(ctx)
		if done = done && err == nil && p.isLatest(ctx, m); done {
			done, err = p.isExposed(ctx, m)
		}
		if err != nil || done {
			return p.report(m, done), err
		}
	}
	cfg.reportStage("selecting")
	// Apply the selection before writing anything, because it can fail.
	if p.sel, err = cfg.Selection.Apply(ctx, in.source); err != nil {
		return Report{}, err
	}
	if err := claim(ctx, cfg.Dest, cfg.Name); err != nil {
		return Report{}, err
	}
	leaseCtx, lease, err := p.acquire(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lease.release(ctx)
	m, already, err := p.publishLocked(leaseCtx)
	if err != nil {
		if errors.Is(context.Cause(leaseCtx), ErrLeaseLost) {
			err = fmt.Errorf("%w: %w", context.Cause(leaseCtx), err)
		}
		return Report{}, err
	}
	return p.report(m, already), nil
}

// publishLocked writes the version, unless it exists already, and makes it the latest. The
// caller holds the publishing lease.
func (p *publication) publishLocked(ctx context.Context) (m schemas.Manifest, already bool, err error) {
	if p.latest, err = p.readLatest(ctx); err != nil {
		return m, false, err
	}
	m, already, err = p.findManifest(ctx)
	if err == nil && !already {
		m, err = p.writeVersion(ctx)
	}
	if err != nil {
		return m, false, err
	}
	if err := p.setLatest(ctx, m); err != nil {
		return m, false, err
	}
	p.cfg.reportStage("copying the version to the root")
	return m, already, p.expose(ctx, m)
}

// writeVersion creates and uploads all files of the version, and then commits it.
func (p *publication) writeVersion(ctx context.Context) (schemas.Manifest, error) {
	var none schemas.Manifest
	scratch, err := os.MkdirTemp(p.cfg.Scratch, "tracesmith-publish-")
	if err != nil {
		return none, fmt.Errorf("making a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	p.scratch = scratch
	p.cfg.reportStage("writing shards")
	files, tally, err := p.writeTables(ctx, p.sel)
	if err != nil {
		return none, err
	}
	m := p.manifest(p.sel, tally, files)
	texts, err := p.texts(m, tally)
	if err != nil {
		return none, err
	}
	p.cfg.reportStage("uploading")
	p.readLatestFiles(ctx)
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
	p.cfg.reportStage("checking")
	if err := p.checkListing(ctx, m); err != nil {
		return none, err
	}
	p.cfg.reportStage("committing")
	return m, p.commit(ctx, m)
}

// manifest returns the manifest of the version, without its text files and its seal.
func (p *publication) manifest(sel selection.Result, t *Tally, files []builtFile) schemas.Manifest {
	m := schemas.Manifest{
		ManifestVersion: manifestVersion, Dataset: p.cfg.Name, Version: p.version, Schemas: map[string]string{},
		Producer: schemas.Producer{Name: "tracesmith", Version: p.cfg.Producer, Parquet: formats.ParquetWriter},
		Checks:   map[string]string{"contamination": contaminationPath, "redaction": redactionPath},
		Inputs:   t.inputs(), Runs: t.runs(), Split: t.split(), Selection: &sel.Info,
		Totals: schemas.ManifestTotals{Episodes: t.stats.Episodes, Steps: t.stats.Steps, Kept: len(sel.Kept), CostUSD: t.stats.CostUSD, DeadLetters: len(p.in.deadLetters)},
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
		AlreadyPublished: already,
		URI:              p.cfg.Dest.URI(), Dataset: m.Dataset, Version: m.Version, Episodes: m.Totals.Episodes,
		Steps: m.Totals.Steps, Kept: m.Totals.Kept, Files: len(m.Files), Uploaded: p.uploaded, Copied: p.copied, Withheld: p.in.withheld,
	}
	var before schemas.Pointer
	if json.Unmarshal(p.latest, &before) == nil && before.Version != m.Version { // p.latest is nil for a new dataset
		r.Replaced = before.Version
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
