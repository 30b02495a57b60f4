package normalise

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Episode normalizes one finished episode without changing ep. If a name beside a value
// reveals a secret, it normalizes the episode again, to find the value in other places
// as well. If the result still contains a secret, for example in a tool's name, the
// error is a *redact.Found.
func Episode(ep *schemas.Episode, cfg Config) (sinks.Staged, error) {
	red := redact.New(cfg.Secrets)
	out, err := normaliseOnce(ep, cfg, red)
	if wiser := red.Wiser(cfg.Secrets); err == nil && wiser != nil {
		red = wiser
		out, err = normaliseOnce(ep, cfg, red)
	}
	if err == nil { // never stage a secret that was missed
		err = redact.NewChecker(cfg.Secrets).CheckAfter(red, "episode "+ep.Job.EpisodeID, out)
	}
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("normalising episode %s: %w", ep.Job.EpisodeID, err)
	}
	return out, nil
}

// Rows does the first part of Episode, for measurements: it returns the rows without
// the derived columns, which are metrics, hashes of prompts and token counts.
func Rows(ep *schemas.Episode, cfg Config) (schemas.EpisodeRow, []schemas.StepRow, error) {
	return newNormaliser(ep, cfg, redact.New(cfg.Secrets)).rows()
}

func (n *normaliser) rows() (e schemas.EpisodeRow, rows []schemas.StepRow, err error) {
	if err = n.toolDefinitions(); err != nil {
		return e, nil, err
	}
	if e, err = n.episode(); err != nil {
		return e, nil, err
	}
	rows, err = n.steps(&e)
	return e, rows, err
}

func normaliseOnce(ep *schemas.Episode, cfg Config, red *redact.Redactor) (sinks.Staged, error) {
	n := newNormaliser(ep, cfg, red)
	e, rows, err := n.rows()
	if err != nil {
		return sinks.Staged{}, err
	}
	if err := n.derive(&e, rows); err != nil {
		return sinks.Staged{}, err
	}
	if err := countTokens(&e, rows, n.tools); err != nil {
		return sinks.Staged{}, err
	}
	out := sinks.Staged{Episode: e, Steps: rows, Tools: n.tools, ToolSets: n.toolSets}
	for _, sha := range slices.Sorted(maps.Keys(n.blobs)) {
		out.Blobs = append(out.Blobs, n.blobs[sha])
	}
	return out, nil
}

// derive fills the columns that are computed from the rows.
func (n *normaliser) derive(e *schemas.EpisodeRow, rows []schemas.StepRow) error {
	for i, same := range history.PromptsRebuild(rows) {
		rows[i].PromptRebuilds = same
		if same != nil {
			e.PromptsRebuild = new(*same && (e.PromptsRebuild == nil || *e.PromptsRebuild))
		}
		if op := rows[i].ContextOp; op != nil && *op != schemas.ContextNone {
			e.ContextTrimmed = new(true)
		}
	}
	metrics.Repeats(rows)
	metrics.News(rows)
	metrics.Behaviour(e, rows)
	// A policy that knew the fix is assumed to have used it in every step, except the
	// demonstrator, which uses only what its transcript shows.
	metrics.Mask(rows, n.leaked, e.GoldUsed && e.Policy != "demonstrator")
	history, network := metrics.LeakClasses(n.leaks)
	slices.Sort(n.leaks)
	e.LeakPatterns, e.LeakGitHistory, e.LeakNetwork = slices.Compact(n.leaks), &history, &network
	if e.LeakPatterns == nil {
		e.LeakPatterns = []string{}
	}

	metrics.Workspaces(rows, treeID(n.ep.BaseSHA), treeID(n.ep.FinalSHA))
	e.MinhashB64 = nonZero(metrics.MinHash(rows))
	hacks := n.hacks
	// If the patch cannot be parsed, its columns are unknown: the agent chose the file
	// names in it, and the episode is not lost because of them.
	if patch, err := metrics.ParsePatch(n.ep.Patch); err == nil {
		e.PatchFiles, e.PatchAdded, e.PatchDeleted = n.texts(patch.Files), new(int32(patch.Added)), new(int32(patch.Deleted))
		e.TestPatchFiles, e.EditsTests = n.texts(patch.Tests()), new(patch.EditsTests())
		hacks = append(hacks, patch.Hacks()...)
		if gold, err := metrics.ParsePatch([]byte(n.ep.Task.GoldPatch)); err == nil {
			metrics.Gold(e, rows, patch, gold)
		}
	}
	slices.Sort(hacks)
	if hacks = slices.Compact(hacks); len(hacks) > 0 || e.EditsTests != nil {
		e.HackPatterns, e.RewardHack = append([]string{}, hacks...), new(len(hacks) > 0)
	}
	if n.noPatch() {
		e.PatchFiles, e.PatchAdded, e.PatchDeleted, e.TestPatchFiles, e.EditsTests = nil, nil, nil, nil, nil
		e.GoldPatchSimilarity, e.GoldEditFileRecall = nil, nil
	}
	if e.Resolved != nil && *e.Resolved {
		e.ResolvedAtStep = metrics.LastChange(rows)
	}
	e.ContentSHA256 = new(contentHash(rows))
	e.InvalidUTF8 = new(int32(n.invalid))
	counts, err := schemas.CanonicalJSON(n.red.Counts())
	if err != nil {
		return err
	}
	e.RedactionsJSON = new(string(counts))
	return nil
}

// contentHash returns equal hashes for episodes with the same messages and calls.
func contentHash(rows []schemas.StepRow) string {
	var said [][3]string
	for _, r := range rows {
		if r.Source == "agent" {
			said = append(said, [3]string{r.Message, schemas.Value(r.ToolName), schemas.Value(r.ArgumentsJSON)})
		}
	}
	return schemas.Hash(said)
}
