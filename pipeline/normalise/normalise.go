package normalise

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Episode normalizes one finished episode without changing ep. If it recognizes a secret by
// its name, it normalizes the episode a second time, to find the value in other places as
// well. If the result still contains a secret, for example in the name of a tool, the error
// wraps a *redact.Found.
func Episode(ep *schemas.Episode, cfg Config) (sinks.Staged, error) {
	red := redact.New(cfg.Secrets)
	out, err := normaliseOnce(ep, cfg, red)
	if second := red.WithLearned(cfg.Secrets); err == nil && second != nil {
		red = second
		out, err = normaliseOnce(ep, cfg, red)
	}
	if err == nil { // search the result again, so that a missed secret is never staged
		err = redact.NewChecker(cfg.Secrets).CheckAfter(red, "episode "+ep.Job.EpisodeID, out)
	}
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("normalising episode %s: %w", ep.Job.EpisodeID, err)
	}
	return out, nil
}

// Rows does the first part of Episode, for benchmarks: it returns the rows without the derived
// columns, which are metrics, hashes and token counts.
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

// licensedPolicies know the fix, but apart from edits marked GoldEdit, their steps use only information from their
// transcripts. Other policies that know the fix are assumed to use it in every step. Only episodes of earlier versions
// are of the policy demonstrator.
var licensedPolicies = []string{"demonstrator", "oracle"}

// derive fills the columns that are computed from the rows.
func (n *normaliser) derive(e *schemas.EpisodeRow, rows []schemas.StepRow) error {
	for i, rebuilds := range history.CheckPrompts(rows) {
		rows[i].PromptRebuilds = rebuilds
		if rebuilds != nil {
			e.PromptsRebuild = new(*rebuilds && (e.PromptsRebuild == nil || *e.PromptsRebuild))
		}
		if op := rows[i].ContextOp; op != nil && *op != schemas.ContextNone {
			e.ContextTrimmed = new(true)
		}
	}
	metrics.Repeats(rows)
	episode := metrics.Read(rows, n.ep.Task.Workdir)
	metrics.MarkNewInformation(episode)
	metrics.Behaviour(e, rows)
	metrics.Mask(rows, n.leaked, e.GoldUsed && !slices.Contains(licensedPolicies, e.Policy))
	history, network := metrics.LeakClasses(n.leaks)
	slices.Sort(n.leaks)
	e.LeakPatterns, e.LeakGitHistory, e.LeakNetwork = slices.Compact(n.leaks), &history, &network
	if e.LeakPatterns == nil {
		e.LeakPatterns = []string{}
	}

	metrics.Workspaces(rows, treeID(n.ep.BaseSHA), treeID(n.ep.FinalSHA))
	e.MinhashB64 = nonZero(metrics.MinHash(rows))
	hacks := n.hacks
	// If the patch cannot be parsed, its columns are null. This is not an error, because the agent
	// chose the file names in the patch.
	evidence := metrics.Evidence{Functions: n.cfg.Functions}
	if patch, err := metrics.ParsePatch(n.ep.Patch); err == nil {
		e.PatchFiles, e.PatchAdded, e.PatchDeleted = n.texts(patch.Files), new(int32(patch.Added)), new(int32(patch.Deleted))
		e.TestPatchFiles, e.EditsTests = n.texts(patch.Tests()), new(patch.EditsTests())
		hacks = append(hacks, patch.Hacks()...)
		if !n.noPatch() {
			evidence.Patch = &patch
		}
		if gold, err := metrics.ParsePatch([]byte(n.ep.Task.GoldPatch)); err == nil {
			metrics.Gold(e, rows, patch, gold)
			evidence.Gold = &gold
		}
	}
	if err := n.seeking(e, episode, evidence); err != nil {
		return err
	}
	if err := n.audit(e, episode); err != nil {
		return err
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

// audit fills the columns about evidence, what the agent claims, and what it names before it was shown.
func (n *normaliser) audit(e *schemas.EpisodeRow, episode *metrics.Episode) error {
	record, err := audit.Claims(e, episode)
	if err != nil {
		return err
	}
	n.evidence(e, episode.Rows, record)
	return closure.FillGrounding(e, episode, n.tools, n.cfg.Names, n.isImport())
}

// seeking fills the columns about information seeking.
func (n *normaliser) seeking(e *schemas.EpisodeRow, episode *metrics.Episode, evidence metrics.Evidence) error {
	seeking := metrics.Seek(episode, evidence)
	if n.isImport() { // whose files rarely say which calls failed
		seeking.InvalidCalls = nil
	}
	if o := n.ep.Task.Origin; o != nil {
		e.GoldOperator = nonZero(o.Operator)
	}
	if seeking.Pack != nil {
		counter, err := tokens.Named(Tokenizer)
		if err != nil {
			return err
		}
		e.PackTokens = new(int64(counter.Text(*seeking.Pack)))
	}
	return seeking.Fill(e, episode.Rows)
}

// isImport reports whether the episode comes from another tool.
func (n *normaliser) isImport() bool { return n.ep.EnvKey.Driver == "" }

// contentHash returns a hash of the agent's messages and calls.
func contentHash(rows []schemas.StepRow) string {
	var contents [][3]string
	for _, r := range rows {
		if r.Source == "agent" {
			contents = append(contents, [3]string{r.Message, schemas.Value(r.ToolName), schemas.Value(r.ArgumentsJSON)})
		}
	}
	return schemas.Hash(contents)
}
