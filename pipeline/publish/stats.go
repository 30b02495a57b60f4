package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Stats is the content of reports/stats.json: counts and distributions of a set of
// episodes. Unless noted, maps count episodes by value; "unknown" stands for null.
type Stats struct {
	Episodes     int            `json:"episodes"`
	Steps        int64          `json:"steps"`
	Instances    int            `json:"instances"`
	Resolved     int            `json:"resolved"`           // by an agent that could not see the gold patch
	ResolvedGold int            `json:"resolved_gold_used"` // by an agent that could see it
	Derived      int            `json:"resolved_derived"`   // part of ResolvedGold: by an edit that does not come from the gold patch
	Unresolved   int            `json:"unresolved"`
	Unverified   int            `json:"unverified"`
	Claimed      int            `json:"claimed_resolved"` // imported files say that they are resolved; tracesmith did not verify it
	Claims       int            `json:"claims"`           // imported files say whether they are resolved
	GoldUsed     int            `json:"gold_used"`
	Contaminated int            `json:"contaminated"` // in a repository that a public benchmark uses
	Unplaced     int            `json:"unplaced"`     // in an unknown repository
	Leaks        int            `json:"leaks"`        // violated a leak rule
	Hacks        int            `json:"hacks"`        // violated a reward-hack rule
	Redactions   int            `json:"redactions"`   // number of placeholders
	Trimmed      int            `json:"trimmed"`      // the model did not always see the whole conversation
	Duplicates   int            `json:"duplicates"`   // same content_sha256 as an earlier episode
	Infra        map[string]int `json:"infra"`        // jobs without an episode after an infrastructure failure, by error_class
	Withheld     int            `json:"withheld"`     // episodes not published because of a possible secret
	CostUSD      *float64       `json:"cost_usd"`     // nil if no episode reported a cost
	Outcomes     map[string]int `json:"outcomes"`
	ExitReasons  map[string]int `json:"exit_reasons"`
	Verdicts     map[string]int `json:"verdicts"` // by verify_method; of imports: by what they claim
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
	Criteria     map[string]int `json:"criteria"`          // episodes that meet the criterion
	Combined     map[string]int `json:"criteria_together"` // by the set of criteria met, without parameters

	// Verdicts by the value of another column.
	ByMethod map[string]VerdictCounts `json:"by_verify_method"`
	ByModel  map[string]VerdictCounts `json:"by_model"`
	BySource map[string]VerdictCounts `json:"by_task_source"`

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

// VerdictCounts counts episodes by verdict. Episodes resolved by a policy that could
// see the gold patch are counted separately.
type VerdictCounts struct {
	Resolved   int `json:"resolved"`
	Gold       int `json:"resolved_gold_used"`
	Unresolved int `json:"unresolved"`
	Unverified int `json:"unverified"`
}

// With returns the counts with one more episode.
func (j VerdictCounts) With(e schemas.EpisodeRow) VerdictCounts {
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

// All returns the total number of episodes.
func (j VerdictCounts) All() int { return j.Resolved + j.Gold + j.Unresolved + j.Unverified }

// Spread summarizes the N known values of a column.
type Spread[T int64 | float64] struct {
	N    int     `json:"n"`
	Min  T       `json:"min"`
	Mean float64 `json:"mean"`
	P50  T       `json:"p50"`
	P90  T       `json:"p90"`
	P99  T       `json:"p99"`
	Max  T       `json:"max"`
}

// NoEpisode returns a text that says how many jobs have no episode and why; "" if all have
// one.
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

// spread summarizes values, with percentiles by nearest rank.
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

// addCost adds a cost to a sum. nil stands for an unknown cost, and for a sum of no known costs.
func addCost(sum, v *float64) *float64 {
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

func orUnknown(s *string) string { return cmp.Or(schemas.Value(s), "unknown") }

// byCount returns the keys of a map of counts, most frequent first.
func byCount[N int | VerdictCounts](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(total(m[b]), total(m[a])), cmp.Compare(a, b)) })
}

func total(v any) int {
	if j, ok := v.(VerdictCounts); ok {
		return j.All()
	}
	return v.(int)
}
