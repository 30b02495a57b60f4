package publish

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tally counts episodes for Stats, figures and the manifest. It is not safe for concurrent use.
type Tally struct {
	stats      Stats
	redaction  Redaction
	instances  map[string]bool
	sources    map[schemas.ManifestInput]map[string]bool // instances by input
	perRun     map[string]*schemas.ManifestRun
	contents   map[string]bool // content_sha256 of the episodes so far
	otherSplit int             // episodes whose split is not the one that follows from the hash of their repository

	steps, turns, wall, prompt, cached, output, reasoning, sft []int64
	cost                                                       []float64
}

// NewTally returns an empty Tally.
func NewTally() *Tally {
	return &Tally{
		redaction: newRedaction(),
		instances: map[string]bool{}, sources: map[schemas.ManifestInput]map[string]bool{}, perRun: map[string]*schemas.ManifestRun{}, contents: map[string]bool{},
		stats: Stats{
			Infra: map[string]int{}, Outcomes: map[string]int{}, ExitReasons: map[string]int{}, Verdicts: map[string]int{}, Splits: map[string]int{},
			Models: map[string]int{}, Agents: map[string]int{}, Sources: map[string]int{}, Licenses: map[string]int{},
			Repos: map[string]int{}, Tools: map[string]int{}, PDBCommands: map[string]int{}, Masks: map[string]int{},
			Errors: map[string]int{}, Roles: map[string]int{}, Harnesses: map[string]int{}, Visibility: map[string]int{},
			Criteria: map[string]int{}, Combined: map[string]int{}, ByMethod: map[string]VerdictCounts{}, ByModel: map[string]VerdictCounts{}, BySource: map[string]VerdictCounts{},
		},
	}
}

// verifiedBy names what decided the verdict. For an import it is what the file claims, such as "openhands.resolved
// says true".
func verifiedBy(e schemas.EpisodeRow) string {
	if claim, _, ok := strings.Cut(schemas.Value(e.VerifyReason), "; nothing was verified here"); ok {
		return claim
	}
	return orUnknown(e.VerifyMethod)
}

// Add counts one episode with its steps.
func (t *Tally) Add(e schemas.EpisodeRow, steps []schemas.StepRow) {
	s := &t.stats
	s.Episodes++
	s.Steps += int64(len(steps))
	all := VerdictCounts{s.Resolved, s.ResolvedGold, s.Unresolved, s.Unverified}.With(e)
	s.Resolved, s.ResolvedGold, s.Unresolved, s.Unverified = all.Resolved, all.Gold, all.Unresolved, all.Unverified
	if schemas.Value(e.Resolved) && e.GoldUsed && schemas.Value(e.Ending) == schemas.EndingEdit {
		s.Derived++
	}
	t.addFlags(e)
	s.CostUSD = addCost(s.CostUSD, e.CostUSD)
	s.Outcomes[orUnknown(e.Outcome)]++
	s.ExitReasons[orUnknown(&e.ExitReason)]++
	s.Verdicts[verifiedBy(e)]++
	s.Splits[e.Split]++
	s.Models[orUnknown(&e.Model)]++
	s.Agents[orUnknown(&e.AgentName)]++
	s.Sources[orUnknown(&e.TaskSource)]++
	s.Licenses[orUnknown(e.LicenseSPDX)]++
	s.Repos[e.Repo]++
	s.Harnesses[orUnknown(&e.Harness)]++
	s.Visibility[orUnknown(e.TestVisibility)]++
	s.ByMethod[orUnknown(e.VerifyMethod)] = s.ByMethod[orUnknown(e.VerifyMethod)].With(e)
	s.ByModel[orUnknown(&e.Model)] = s.ByModel[orUnknown(&e.Model)].With(e)
	s.BySource[orUnknown(&e.TaskSource)] = s.BySource[orUnknown(&e.TaskSource)].With(e)
	t.instances[e.TaskSource+"\x00"+e.InstanceID] = true
	t.addLineage(e)
	t.addCriteria(e)
	t.steps, t.turns = append(t.steps, int64(len(steps))), append(t.turns, int64(e.NTurns))
	t.wall, t.sft = appendKnown(t.wall, e.WallMS), appendKnown(t.sft, e.SFTTokens)
	t.prompt, t.cached = appendKnown(t.prompt, e.PromptTokens), appendKnown(t.cached, e.CachedTokens)
	t.output, t.reasoning = appendKnown(t.output, e.CompletionTokens), appendKnown(t.reasoning, e.ReasoningTokens)
	t.cost = appendKnown(t.cost, e.CostUSD)
	for _, st := range steps {
		s.Roles[st.Source]++
		if st.ErrorClass != nil {
			s.Errors[*st.ErrorClass]++
		}
		if st.ToolName != nil {
			s.Tools[*st.ToolName]++
		}
		if st.PDBCommand != nil {
			s.PDBCommands[*st.PDBCommand]++
		}
		if st.Source == "agent" && !st.Train {
			s.Masks[orUnknown(st.MaskReason)]++
		}
	}
}

// AddDead counts jobs that ended without an episode: withheld ones, and infrastructure
// failures by error class.
func (t *Tally) AddDead(dead []schemas.DeadLetterRow) {
	for _, d := range dead {
		if d.State == withheldState {
			t.stats.Withheld++
		} else {
			t.stats.Infra[orUnknown(d.ErrorClass)]++
		}
	}
}

func (t *Tally) addFlags(e schemas.EpisodeRow) {
	s := &t.stats
	for _, f := range []struct {
		is bool
		n  *int
	}{
		{schemas.Value(e.ClaimedResolved), &s.Claimed}, {e.ClaimedResolved != nil, &s.Claims},
		{e.GoldUsed, &s.GoldUsed}, {e.ContextTrimmed != nil && *e.ContextTrimmed, &s.Trimmed}, {t.contents[schemas.Value(e.ContentSHA256)], &s.Duplicates},
		{len(e.Contamination) > 0, &s.Contaminated}, {e.Contamination == nil, &s.Unplaced},
		{len(e.LeakPatterns) > 0, &s.Leaks}, {len(e.HackPatterns) > 0, &s.Hacks},
	} {
		if f.is {
			*f.n++
		}
	}
	if e.ContentSHA256 != nil {
		t.contents[*e.ContentSHA256] = true
	}
	t.redaction.add(e)
	s.Redactions = t.redaction.Placeholders
}

// addCriteria counts each criterion that an episode meets, and the combination of all of
// them. The combination omits the parameters of the criteria.
func (t *Tally) addCriteria(e schemas.EpisodeRow) {
	var names []string
	for _, c := range e.SatisfiedCriteria {
		t.stats.Criteria[c]++
		name, _, _ := strings.Cut(c, "(")
		names = append(names, name)
	}
	slices.Sort(names)
	t.stats.Combined[cmp.Or(strings.Join(slices.Compact(names), ", "), "none")]++
}

// addLineage counts an episode for the inputs, the runs and the split in the manifest.
func (t *Tally) addLineage(e schemas.EpisodeRow) {
	in := schemas.ManifestInput{Source: e.TaskSource, Revision: schemas.Value(e.TaskRevision), License: schemas.Value(e.LicenseSPDX)}
	if t.sources[in] == nil {
		t.sources[in] = map[string]bool{}
	}
	t.sources[in][e.InstanceID] = true
	if split, err := provenance.Split(e.Repo, provenance.Salt, provenance.Shares); err != nil || split != e.Split {
		t.otherSplit++
	}
	key := schemas.Hash([]string{e.RunID, e.Model, e.AgentName, schemas.Value(e.ConfigSHA256)})
	r, ok := t.perRun[key]
	if !ok {
		r = &schemas.ManifestRun{RunID: e.RunID, Model: e.Model, Agent: e.AgentName, ConfigSHA256: schemas.Value(e.ConfigSHA256)}
		t.perRun[key] = r
	}
	r.Episodes++
	r.CostUSD = addCost(r.CostUSD, e.CostUSD)
}

// Stats returns the statistics of the episodes and jobs added so far. It shares its maps with
// t, so later calls of Add change them.
func (t *Tally) Stats() Stats {
	s := t.stats
	s.Instances = len(t.instances)
	s.StepsEach, s.Turns, s.WallMS, s.SFTTokens, s.Cost = spread(t.steps), spread(t.turns), spread(t.wall), spread(t.sft), spread(t.cost)
	s.PromptTokens, s.CachedTokens, s.OutputTokens, s.ReasoningTokens = spread(t.prompt), spread(t.cached), spread(t.output), spread(t.reasoning)
	return s
}

func (t *Tally) inputs() []schemas.ManifestInput {
	var out []schemas.ManifestInput
	for in, instances := range t.sources {
		in.Tasks = len(instances)
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b schemas.ManifestInput) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.License, b.License))
	})
	return out
}

func (t *Tally) runs() []schemas.ManifestRun {
	var out []schemas.ManifestRun
	for _, r := range t.perRun {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b schemas.ManifestRun) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ConfigSHA256, b.ConfigSHA256))
	})
	return out
}

func (t *Tally) split() *schemas.ManifestSplit {
	ratios := map[string]float64{}
	for i, name := range provenance.Splits {
		ratios[name] = provenance.Shares[i]
	}
	return &schemas.ManifestSplit{Policy: "repo-hash", Salt: provenance.Salt, Ratios: ratios, Exceptions: t.otherSplit}
}
