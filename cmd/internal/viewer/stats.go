package viewer

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
)

// statsPage holds the statistics of a place, as the template shows them.
type statsPage struct {
	page
	Place   placeView
	Plots   []plotView
	Spreads []spreadRow
	Counts  []countTable
	Lead    []string
	stats   publish.Stats
}

type plotView struct {
	Title string
	SVG   template.HTML
}

type spreadRow struct {
	Name               string
	P50, P90, P99, Max string
}

type countTable struct {
	Title string
	Rows  []param
}

func (s *Server) showStats(r *http.Request) (answer, error) {
	p, err := s.placeOf(r)
	if err != nil {
		return answer{}, err
	}
	if len(p.episodes) > quickStats && r.URL.RawQuery == "" && strings.HasPrefix(r.URL.Path, "/stats/") && !p.hasStatistics() {
		wait := &statsPage{page: s.page("Statistics", "stats"), Place: p.view(), Lead: []string{fmt.Sprintf("Reading all steps of %s. The statistics appear here when that is done.", plural(len(p.episodes), "episode"))}}
		wait.Refresh = r.URL.Path + "?wait=1"
		return answer{"stats", wait, nil}, nil
	}
	v, err := p.statistics(r.Context())
	if err != nil {
		return answer{}, err
	}
	shown := *v
	shown.page, shown.Place = s.page("Statistics", "stats"), p.view()
	return answer{"stats", &shown, struct {
		Schema string `json:"schema"`
		publish.Stats
	}{"tracesmith.stats/1", v.stats}}, nil
}

// quickStats is the number of episodes whose statistics are there before a reader asks what is going on.
const quickStats = 1000

// hasStatistics reports whether the statistics are computed, without waiting for them.
func (p *place) hasStatistics() bool {
	if !p.cache.TryLock() {
		return false
	}
	defer p.cache.Unlock()
	return p.cache.stats != nil
}

// statistics computes the statistics of a place once per version of its index, because it has to
// read all steps. The caller holds p.mu.
func (p *place) statistics(ctx context.Context) (*statsPage, error) {
	p.cache.Lock()
	defer p.cache.Unlock()
	if p.cache.stats != nil {
		return p.cache.stats, nil
	}
	tally := publish.NewTally()
	for t, err := range p.data.Trajectories(ctx) {
		if err != nil {
			return nil, err
		}
		tally.Add(t.Episode, t.Steps)
	}
	for _, e := range p.entries {
		if e.dead != nil {
			tally.AddDead([]schemas.DeadLetterRow{e.dead.DeadLetterRow})
		}
	}
	v := newStatsPage(tally)
	p.cache.stats = v
	return v, nil
}

func newStatsPage(tally *publish.Tally) *statsPage {
	st := tally.Stats()
	v := &statsPage{stats: st}
	for _, plot := range tally.Plots() {
		v.Plots = append(v.Plots, plotView{plot.Title, template.HTML(plot.SVG)}) // drawn here, with escaped labels
	}
	v.Lead = append(v.Lead, fmt.Sprintf("%s of %s, %s", plural(int64(st.Episodes), "episode"), plural(int64(st.Instances), "task"), plural(st.Steps, "step")),
		observe.Successes{Verified: st.Resolved + st.ResolvedGold + st.Unresolved, Alone: st.Resolved, Gold: st.ResolvedGold, Derived: st.Derived}.String())
	if st.Unverified > 0 {
		v.Lead = append(v.Lead, plural(int64(st.Unverified), "episode")+" without a verdict")
	}
	if without := st.NoEpisode(); without != "" {
		v.Lead = append(v.Lead, "without an episode: "+without)
	}
	for _, row := range []struct {
		name   string
		spread publish.Spread[int64]
	}{
		{"steps", st.StepsEach}, {"turns", st.Turns}, {"time in ms", st.WallMS}, {"prompt tokens", st.PromptTokens}, {"cached tokens", st.CachedTokens},
		{"reply tokens", st.OutputTokens}, {"reasoning tokens", st.ReasoningTokens}, {"tokens as a training text", st.SFTTokens},
	} {
		if s := row.spread; s.N > 0 {
			v.Spreads = append(v.Spreads, spreadRow{row.name, grouped(s.P50), grouped(s.P90), grouped(s.P99), grouped(s.Max)})
		}
	}
	if c := st.Cost; c.N > 0 {
		money := observe.USD
		v.Spreads = append(v.Spreads, spreadRow{"cost", money(c.P50), money(c.P90), money(c.P99), money(c.Max)})
	}
	for _, table := range []struct {
		title  string
		counts map[string]int
	}{
		{"Outcome", st.Outcomes}, {"Exit reason", st.ExitReasons}, {"Verified by", st.Verdicts}, {"Agent", st.Agents}, {"Model", st.Models},
		{"Source", st.Sources}, {"Split", st.Splits}, {"License", st.Licenses}, {"Tool", st.Tools}, {"Debugger command", st.PDBCommands},
		{"Error", st.Errors}, {"Not trained on", st.Masks},
	} {
		if len(table.counts) > 0 {
			v.Counts = append(v.Counts, countTable{table.title, countRows(table.counts)})
		}
	}
	return v
}

// countRows returns the 20 largest counts.
func countRows(counts map[string]int) []param {
	names := sortedKeys(counts)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	var rows []param
	for _, name := range names[:min(len(names), 20)] {
		rows = append(rows, param{visible(cmp.Or(name, "none")), grouped(counts[name])})
	}
	return rows
}
