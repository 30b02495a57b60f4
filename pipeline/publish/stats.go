package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/schemas"
)

// Stats are the distributions of a set of episodes, as in reports/stats.json.
// Maps count episodes by value; "unknown" stands for null.
type Stats struct {
	Episodes     int            `json:"episodes"`
	Steps        int64          `json:"steps"`
	Instances    int            `json:"instances"`
	Resolved     int            `json:"resolved"`           // by an agent that could not see the gold patch
	ResolvedGold int            `json:"resolved_gold_used"` // by a policy that could
	Unresolved   int            `json:"unresolved"`
	Unverified   int            `json:"unverified"`
	GoldUsed     int            `json:"gold_used"`
	Contaminated int            `json:"contaminated"` // belong to a public benchmark
	Unplaced     int            `json:"unplaced"`     // of a repository nobody knows
	Leaks        int            `json:"leaks"`        // broke a leak rule
	Hacks        int            `json:"hacks"`        // broke a reward-hack rule
	Redactions   int            `json:"redactions"`   // placeholders
	Trimmed      int            `json:"trimmed"`      // the model did not always see the whole conversation
	Duplicates   int            `json:"duplicates"`   // say what an earlier episode said (content_sha256)
	Infra        map[string]int `json:"infra"`        // jobs without an episode, because of an infrastructure failure, by error_class
	Withheld     int            `json:"withheld"`     // episodes that are not here because of a possible secret
	CostUSD      *float64       `json:"cost_usd"`     // nil: nothing reported a cost
	Outcomes     map[string]int `json:"outcomes"`
	ExitReasons  map[string]int `json:"exit_reasons"`
	Verdicts     map[string]int `json:"verdicts"` // by verify_method
	Splits       map[string]int `json:"splits"`
	Models       map[string]int `json:"models"`
	Agents       map[string]int `json:"agents"`
	Sources      map[string]int `json:"sources"`
	Licenses     map[string]int `json:"licenses"`
	Repos        map[string]int `json:"repos"`
	Tools        map[string]int `json:"tools"`        // calls
	PDBCommands  map[string]int `json:"pdb_commands"` // calls
	Masks        map[string]int `json:"masks"`        // steps of agents that are not trained on, by reason
	Errors       map[string]int `json:"errors"`       // steps, by error_class
	Roles        map[string]int `json:"roles"`        // steps, by source
	Harnesses    map[string]int `json:"harnesses"`
	Visibility   map[string]int `json:"test_visibility"`
	Criteria     map[string]int `json:"criteria"`          // episodes that meet it
	Combined     map[string]int `json:"criteria_together"` // by all that they meet, parameters left out

	// What was decided, by another column.
	ByMethod map[string]Judged `json:"by_verify_method"`
	ByModel  map[string]Judged `json:"by_model"`
	BySource map[string]Judged `json:"by_task_source"`

	StepsEach       Spread[int64]   `json:"steps_per_episode"`
	Turns           Spread[int64]   `json:"turns"`
	WallMS          Spread[int64]   `json:"wall_ms"`
	PromptTokens    Spread[int64]   `json:"prompt_tokens"`
	CachedTokens    Spread[int64]   `json:"cached_tokens"`
	OutputTokens    Spread[int64]   `json:"completion_tokens"`
	ReasoningTokens Spread[int64]   `json:"reasoning_tokens"`
	SFTTokens       Spread[int64]   `json:"sft_tokens"`
	Cost            Spread[float64] `json:"cost_usd_per_episode"`
}

// Judged counts episodes by their verdict. Those resolved by a policy that could see
// the gold patch are counted apart.
type Judged struct {
	Resolved   int `json:"resolved"`
	Gold       int `json:"resolved_gold_used"`
	Unresolved int `json:"unresolved"`
	Unverified int `json:"unverified"`
}

// Plus is j with one more episode.
func (j Judged) Plus(e schemas.EpisodeRow) Judged {
	switch {
	case e.Resolved == nil:
		j.Unverified++
	case *e.Resolved && e.GoldUsed:
		j.Gold++
	case *e.Resolved:
		j.Resolved++
	default:
		j.Unresolved++
	}
	return j
}

// All is the number of episodes.
func (j Judged) All() int { return j.Resolved + j.Gold + j.Unresolved + j.Unverified }

// Spread summarises the values that are known; N of them.
type Spread[T int64 | float64] struct {
	N    int     `json:"n"`
	Min  T       `json:"min"`
	Mean float64 `json:"mean"`
	P50  T       `json:"p50"`
	P90  T       `json:"p90"`
	P99  T       `json:"p99"`
	Max  T       `json:"max"`
}

// Tally adds up Stats episode by episode. One goroutine uses it.
type Tally struct {
	stats     Stats
	redaction Redaction
	instances map[string]bool
	sources   map[schemas.ManifestInput]map[string]bool // instances of each
	perRun    map[string]*schemas.ManifestRun
	said      map[string]bool // content_sha256
	otherwise int             // episodes whose split the hash of their repository did not decide

	steps, turns, wall, prompt, cached, output, reasoning, sft []int64
	cost                                                       []float64
}

// NewTally makes an empty one.
func NewTally() *Tally {
	return &Tally{
		redaction: newRedaction(),
		instances: map[string]bool{}, sources: map[schemas.ManifestInput]map[string]bool{}, perRun: map[string]*schemas.ManifestRun{}, said: map[string]bool{},
		stats: Stats{
			Infra: map[string]int{}, Outcomes: map[string]int{}, ExitReasons: map[string]int{}, Verdicts: map[string]int{}, Splits: map[string]int{},
			Models: map[string]int{}, Agents: map[string]int{}, Sources: map[string]int{}, Licenses: map[string]int{},
			Repos: map[string]int{}, Tools: map[string]int{}, PDBCommands: map[string]int{}, Masks: map[string]int{},
			Errors: map[string]int{}, Roles: map[string]int{}, Harnesses: map[string]int{}, Visibility: map[string]int{},
			Criteria: map[string]int{}, Combined: map[string]int{}, ByMethod: map[string]Judged{}, ByModel: map[string]Judged{}, BySource: map[string]Judged{},
		},
	}
}

// Add counts one episode with its steps.
func (t *Tally) Add(e schemas.EpisodeRow, steps []schemas.StepRow) {
	s := &t.stats
	s.Episodes++
	s.Steps += int64(len(steps))
	all := Judged{s.Resolved, s.ResolvedGold, s.Unresolved, s.Unverified}.Plus(e)
	s.Resolved, s.ResolvedGold, s.Unresolved, s.Unverified = all.Resolved, all.Gold, all.Unresolved, all.Unverified
	t.addFlags(e)
	s.CostUSD = plus(s.CostUSD, e.CostUSD)
	s.Outcomes[word(e.Outcome)]++
	s.ExitReasons[word(&e.ExitReason)]++
	s.Verdicts[word(e.VerifyMethod)]++
	s.Splits[e.Split]++
	s.Models[word(&e.Model)]++
	s.Agents[word(&e.AgentName)]++
	s.Sources[word(&e.TaskSource)]++
	s.Licenses[word(e.LicenseSPDX)]++
	s.Repos[e.Repo]++
	s.Harnesses[word(&e.Harness)]++
	s.Visibility[word(e.TestVisibility)]++
	s.ByMethod[word(e.VerifyMethod)] = s.ByMethod[word(e.VerifyMethod)].Plus(e)
	s.ByModel[word(&e.Model)] = s.ByModel[word(&e.Model)].Plus(e)
	s.BySource[word(&e.TaskSource)] = s.BySource[word(&e.TaskSource)].Plus(e)
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
			s.Masks[word(st.MaskReason)]++
		}
	}
}

// AddDead counts jobs that have no episode.
func (t *Tally) AddDead(dead []schemas.DeadLetterRow) {
	for _, d := range dead {
		if d.State == deadWithheld {
			t.stats.Withheld++
		} else {
			t.stats.Infra[word(d.ErrorClass)]++
		}
	}
}

// NoEpisode says in words how many jobs have no episode; "" if all have one.
func (s Stats) NoEpisode() string {
	var parts []string
	failures := 0
	for _, class := range byCount(s.Infra) {
		parts = append(parts, fmt.Sprintf("%s %d", class, s.Infra[class]))
		failures += s.Infra[class]
	}
	text := fmt.Sprintf("%d infrastructure failures (%s)", failures, strings.Join(parts, ", "))
	switch {
	case failures == 0 && s.Withheld == 0:
		return ""
	case failures == 0:
		return fmt.Sprintf("%d withheld because of a possible secret", s.Withheld)
	case failures == 1:
		text = strings.Replace(text, "failures", "failure", 1)
	}
	if s.Withheld > 0 {
		text += fmt.Sprintf(", %d withheld because of a possible secret", s.Withheld)
	}
	return text
}

func (t *Tally) addFlags(e schemas.EpisodeRow) {
	s := &t.stats
	for _, f := range []struct {
		is bool
		n  *int
	}{
		{e.GoldUsed, &s.GoldUsed}, {e.ContextTrimmed != nil && *e.ContextTrimmed, &s.Trimmed}, {t.said[text(e.ContentSHA256)], &s.Duplicates},
		{len(e.Contamination) > 0, &s.Contaminated}, {e.Contamination == nil, &s.Unplaced},
		{len(e.LeakPatterns) > 0, &s.Leaks}, {len(e.HackPatterns) > 0, &s.Hacks},
	} {
		if f.is {
			*f.n++
		}
	}
	if e.ContentSHA256 != nil {
		t.said[*e.ContentSHA256] = true
	}
	t.redaction.add(e)
	s.Redactions = t.redaction.Placeholders
}

// addCriteria counts the criteria that an episode meets; together they are named
// without their parameters.
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

func (t *Tally) addLineage(e schemas.EpisodeRow) {
	in := schemas.ManifestInput{Source: e.TaskSource, Revision: text(e.TaskRevision), License: text(e.LicenseSPDX)}
	if t.sources[in] == nil {
		t.sources[in] = map[string]bool{}
	}
	t.sources[in][e.InstanceID] = true
	if by, err := provenance.Split(e.Repo, provenance.Salt, provenance.Shares); err != nil || by != e.Split {
		t.otherwise++
	}
	key := schemas.Hash([]string{e.RunID, e.Model, e.AgentName, text(e.ConfigSHA256)})
	r, ok := t.perRun[key]
	if !ok {
		r = &schemas.ManifestRun{RunID: e.RunID, Model: e.Model, Agent: e.AgentName, ConfigSHA256: text(e.ConfigSHA256)}
		t.perRun[key] = r
	}
	r.Episodes++
	r.CostUSD = plus(r.CostUSD, e.CostUSD)
}

// Stats is the sum so far.
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
	return &schemas.ManifestSplit{Policy: "repo-hash", Salt: provenance.Salt, Ratios: ratios, Otherwise: t.otherwise}
}

// spread takes percentiles by nearest rank.
func spread[T int64 | float64](values []T) Spread[T] {
	n := len(values)
	if n == 0 {
		return Spread[T]{}
	}
	v := slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	at := func(percent int) T { return v[(n*percent+99)/100-1] }
	return Spread[T]{N: n, Min: v[0], Mean: sum / float64(n), P50: at(50), P90: at(90), P99: at(99), Max: v[n-1]}
}

func plus(sum, v *float64) *float64 {
	switch {
	case v == nil:
		return sum
	case sum == nil:
		return new(*v)
	}
	return new(*sum + *v)
}

func appendKnown[T int64 | float64](list []T, v *T) []T {
	if v == nil {
		return list
	}
	return append(list, *v)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func word(s *string) string { return cmp.Or(text(s), "unknown") }

// byCount lists the keys of a count, the most frequent first.
func byCount[N int | Judged](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(amount(m[b]), amount(m[a])), cmp.Compare(a, b)) })
}

func amount(v any) int {
	if j, ok := v.(Judged); ok {
		return j.All()
	}
	return v.(int)
}
