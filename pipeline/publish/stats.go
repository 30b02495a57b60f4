package publish

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Stats are the distributions of a set of episodes, as in reports/stats.json.
// Maps count episodes by value; "unknown" stands for null.
type Stats struct {
	Episodes     int            `json:"episodes"`
	Steps        int64          `json:"steps"`
	Instances    int            `json:"instances"`
	Resolved     int            `json:"resolved"`
	Unresolved   int            `json:"unresolved"`
	Unverified   int            `json:"unverified"`
	GoldUsed     int            `json:"gold_used"`
	Contaminated int            `json:"contaminated"` // belong to a public benchmark
	Unplaced     int            `json:"unplaced"`     // of a repository nobody knows
	Leaks        int            `json:"leaks"`        // broke a leak rule
	Hacks        int            `json:"hacks"`        // broke a reward-hack rule
	Redactions   int            `json:"redactions"`   // placeholders
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
	Turns        Spread         `json:"turns"`
	WallMS       Spread         `json:"wall_ms"`
	PromptTokens Spread         `json:"prompt_tokens"`
	OutputTokens Spread         `json:"completion_tokens"`
}

// Spread summarises the values that are known; N of them.
type Spread struct {
	N   int   `json:"n"`
	P50 int64 `json:"p50"`
	P90 int64 `json:"p90"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Tally adds up Stats episode by episode. One goroutine uses it.
type Tally struct {
	stats     Stats
	redaction Redaction
	instances map[string]bool
	sources   map[schemas.ManifestInput]map[string]bool // instances of each
	perRun    map[string]*schemas.ManifestRun
	turns     []int64
	wall      []int64
	prompt    []int64
	output    []int64
}

// NewTally makes an empty one.
func NewTally() *Tally {
	return &Tally{
		redaction: newRedaction(),
		instances: map[string]bool{}, sources: map[schemas.ManifestInput]map[string]bool{}, perRun: map[string]*schemas.ManifestRun{},
		stats: Stats{
			Outcomes: map[string]int{}, ExitReasons: map[string]int{}, Verdicts: map[string]int{}, Splits: map[string]int{},
			Models: map[string]int{}, Agents: map[string]int{}, Sources: map[string]int{}, Licenses: map[string]int{},
			Repos: map[string]int{}, Tools: map[string]int{}, PDBCommands: map[string]int{}, Masks: map[string]int{},
		},
	}
}

// Add counts one episode with its steps.
func (t *Tally) Add(e schemas.EpisodeRow, steps []schemas.StepRow) {
	s := &t.stats
	s.Episodes++
	s.Steps += int64(len(steps))
	switch {
	case e.Resolved == nil:
		s.Unverified++
	case *e.Resolved:
		s.Resolved++
	default:
		s.Unresolved++
	}
	if e.GoldUsed {
		s.GoldUsed++
	}
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
	t.instances[e.TaskSource+"\x00"+e.InstanceID] = true
	t.addLineage(e)
	t.turns = append(t.turns, int64(e.NTurns))
	t.wall = appendKnown(t.wall, e.WallMS)
	t.prompt = appendKnown(t.prompt, e.PromptTokens)
	t.output = appendKnown(t.output, e.CompletionTokens)
	for _, st := range steps {
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

func (t *Tally) addFlags(e schemas.EpisodeRow) {
	s := &t.stats
	for _, f := range []struct {
		is bool
		n  *int
	}{
		{len(e.Contamination) > 0, &s.Contaminated}, {e.Contamination == nil, &s.Unplaced},
		{len(e.LeakPatterns) > 0, &s.Leaks}, {len(e.HackPatterns) > 0, &s.Hacks},
	} {
		if f.is {
			*f.n++
		}
	}
	t.redaction.add(e)
	s.Redactions = t.redaction.Placeholders
}

func (t *Tally) addLineage(e schemas.EpisodeRow) {
	in := schemas.ManifestInput{Source: e.TaskSource, Revision: text(e.TaskRevision), License: text(e.LicenseSPDX)}
	if t.sources[in] == nil {
		t.sources[in] = map[string]bool{}
	}
	t.sources[in][e.InstanceID] = true
	key := schemas.Hash([]string{e.RunID, e.Model, e.AgentName})
	r, ok := t.perRun[key]
	if !ok {
		r = &schemas.ManifestRun{RunID: e.RunID, Model: e.Model, Agent: e.AgentName}
		t.perRun[key] = r
	}
	r.Episodes++
	r.CostUSD = plus(r.CostUSD, e.CostUSD)
}

// Stats is the sum so far.
func (t *Tally) Stats() Stats {
	s := t.stats
	s.Instances = len(t.instances)
	s.Turns, s.WallMS, s.PromptTokens, s.OutputTokens = spread(t.turns), spread(t.wall), spread(t.prompt), spread(t.output)
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
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Agent, b.Agent))
	})
	return out
}

// spread takes percentiles by nearest rank.
func spread(values []int64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	at := func(percent int) int64 { return v[(n*percent+99)/100-1] }
	return Spread{N: n, P50: at(50), P90: at(90), P99: at(99), Max: v[n-1]}
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

func appendKnown(list []int64, v *int64) []int64 {
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
func byCount(m map[string]int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
