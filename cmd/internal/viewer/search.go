package viewer

import (
	"context"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of a search in the steps of all episodes.
const (
	maxHits     = 1000 // steps that contain the text, after which the search stops
	maxExcerpts = 3    // of an episode
	aroundHit   = 80   // bytes of an excerpt on each side of the text
	maxSearches = 4    // searches whose hits a place keeps
)

// stepHits are the steps of an episode that contain a text.
type stepHits struct {
	Steps    int       `json:"steps"`
	Excerpts []excerpt `json:"excerpts"` // of the first steps
}

// excerpt is the first occurrence of a text in a step.
type excerpt struct {
	Step   int32  `json:"step"`
	Before string `json:"before"`
	Text   string `json:"text"`
	After  string `json:"after"`
}

// stepTexts returns the texts of a step as its page shows them.
func stepTexts(s *schemas.StepRow) []string {
	return append([]string{s.Message, schemas.Value(s.Reasoning), callText(s), schemas.Value(s.Observation)}, triggered(s)...)
}

// excerptOf returns the excerpt of a step, or false if the step does not contain a text, which is in
// lower case.
func excerptOf(s *schemas.StepRow, text string) (excerpt, bool) {
	for _, whole := range stepTexts(s) {
		lower := strings.ToLower(whole)
		at := strings.Index(lower, text)
		if at < 0 {
			continue
		}
		if len(lower) != len(whole) { // few letters change their length, and with it all positions
			whole = lower
		}
		end := at + len(text)
		before, after := cutAt(whole[:at], -aroundHit), cutAt(whole[end:], aroundHit)
		e := excerpt{s.StepIndex, strings.Clone(before), strings.Clone(whole[at:end]), strings.Clone(after)} // copies, which do not keep the whole text
		if len(before) < at {
			e.Before = "…" + e.Before
		}
		if end+len(after) < len(whole) {
			e.After += "…"
		}
		return e, true
	}
	return excerpt{}, false
}

// hitsOf returns the steps of an episode that contain a text, which is in lower case.
func hitsOf(steps []schemas.StepRow, text string) stepHits {
	var h stepHits
	for i := range steps {
		if e, found := excerptOf(&steps[i], text); found {
			if h.Steps++; len(h.Excerpts) < maxExcerpts {
				h.Excerpts = append(h.Excerpts, e)
			}
		}
	}
	return h
}

// stepSearches holds what searches have found in the steps of a place. Episodes never change, so that
// repeating a search, or following a run with it, reads no steps again.
type stepSearches struct {
	sync.Mutex
	byText map[string]map[string]stepHits // by text and by episode id
}

func (c *stepSearches) get(text, id string) (stepHits, bool) {
	c.Lock()
	defer c.Unlock()
	h, ok := c.byText[text][id]
	return h, ok
}

func (c *stepSearches) add(text, id string, h stepHits) {
	c.Lock()
	defer c.Unlock()
	if c.byText[text] == nil {
		if len(c.byText) >= maxSearches || c.byText == nil {
			c.byText = map[string]map[string]stepHits{}
		}
		c.byText[text] = map[string]stepHits{}
	}
	c.byText[text][id] = h
}

func (c *stepSearches) clear() {
	c.Lock()
	defer c.Unlock()
	c.byText = nil
}

// searchSteps searches for a text in the steps of entries until it has found maxHits steps, and
// returns the number of entries that it left out for that reason.
func (s *Server) searchSteps(ctx context.Context, entries []*entry, text string) (hits map[*entry]stepHits, unsearched int, err error) {
	text = strings.ToLower(text)
	hits = map[*entry]stepHits{}
	total := 0
	for _, p := range s.places {
		missing := map[string]*entry{}
		var rows []schemas.EpisodeRow
		for _, e := range entries {
			if e.place != p || e.row == nil {
				continue
			}
			if known, ok := p.searches.get(text, e.id); ok {
				hits[e] = known
				total += known.Steps
				continue
			}
			missing[e.id] = e
			rows = append(rows, *e.row)
		}
		if len(rows) > 0 && total < maxHits {
			for t, err := range p.data.TrajectoriesOf(ctx, rows) {
				if err != nil {
					return hits, 0, err
				}
				if err := ctx.Err(); err != nil {
					return hits, 0, err
				}
				id := t.Episode.EpisodeID
				found := hitsOf(t.Steps, text)
				p.searches.add(text, id, found)
				hits[missing[id]] = found
				delete(missing, id)
				if total += found.Steps; total >= maxHits {
					break
				}
			}
		}
		unsearched += len(missing)
	}
	return hits, unsearched, nil
}
