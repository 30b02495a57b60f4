package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// lesson is what models are trained on.
type lesson struct {
	states   []state
	examples []example // by index of states
	partOf   map[string]int
	parts    int
	seed     uint64
}

// treatment is how the examples are changed before training.
type treatment string

const (
	plain treatment = "model"
	// Every choice is replaced by a random candidate.
	shuffledChoices treatment = "choices shuffled"
	// Every choice is made in the state of another repository: at the candidate whose position in the
	// list is the same share of its length. Only habits of position can be learned.
	mixedObservations treatment = "observations mixed"
)

// without returns at most size examples from outside a part.
func (l lesson) without(part, size int, how treatment) []example {
	random := rand.New(rand.NewPCG(l.seed, uint64(part)+2))
	var indexes []int
	for _, i := range random.Perm(len(l.examples)) {
		if l.partOf[l.states[i].group] != part && len(indexes) < size {
			indexes = append(indexes, i)
		}
	}
	out := make([]example, len(indexes))
	for k, i := range indexes {
		out[k] = l.examples[i]
		switch how {
		case shuffledChoices:
			out[k].chosen = random.IntN(len(out[k].features))
		case mixedObservations:
			other := i
			for try := 0; try < 100 && l.states[other].group == l.states[i].group; try++ {
				other = indexes[random.IntN(len(indexes))]
			}
			share := (float64(l.examples[i].chosen) + 0.5) / float64(len(l.examples[i].features))
			out[k] = l.examples[other]
			out[k].chosen = int(share * float64(len(out[k].features)))
		}
	}
	return out
}

// table fills in the columns and rows of a report.
type table struct {
	report    *Report
	questions []question
	partOf    map[string]int
}

func (t *table) columns() {
	kinds := map[string][]*question{}
	var order []string
	for i := range t.questions {
		q := &t.questions[i]
		if kinds[q.kind] == nil {
			order = append(order, q.kind)
		}
		kinds[q.kind] = append(kinds[q.kind], q)
	}
	slices.Sort(order)
	for _, kind := range order {
		c := Column{Kind: kind, States: len(kinds[kind])}
		tasks, counts := map[string]bool{}, []int{}
		for _, q := range kinds[kind] {
			tasks[q.task] = true
			counts = append(counts, len(q.candidates))
			if slices.Contains(q.right, true) {
				c.Shown += 1 / float64(c.States)
			}
		}
		slices.Sort(counts)
		c.Tasks, c.Candidates = len(tasks), counts[len(counts)/2]
		t.report.Columns = append(t.report.Columns, c)
	}
}

// model trains one model for each part and adds a row.
func (t *table) model(ctx context.Context, l lesson, size int, how treatment) error {
	models := make([]*model, l.parts)
	row := Row{Name: string(how), Asked: size, Trained: math.MaxInt}
	for part := range models {
		if err := ctx.Err(); err != nil {
			return err
		}
		examples := l.without(part, size, how)
		row.Trained = min(row.Trained, len(examples))
		models[part] = train(examples, l.seed+uint64(part))
	}
	t.row(row, func(q *question) []float64 { return models[t.partOf[q.group]].scores(q.features) })
	return nil
}

// controls adds the rows of choices without a model.
func (t *table) controls() {
	t.row(Row{Name: "Ochiai"}, func(q *question) []float64 {
		if len(q.failure.ochiai) == 0 {
			return nil
		}
		return q.scores(func(i int) float64 {
			score, _ := q.score(&q.candidates[i])
			return score
		})
	})
	t.row(Row{Name: "traceback"}, func(q *question) []float64 {
		return q.scores(func(i int) (best float64) {
			for depth, l := range q.failure.frames {
				if q.candidates[i].contains(l) {
					best = float64(depth + 1)
				}
			}
			return best
		})
	})
	t.row(Row{Name: "entry of last read"}, func(q *question) []float64 { return q.only(q.entry) })
	t.row(Row{Name: "random"}, func(q *question) []float64 { return q.scores(func(int) float64 { return 0 }) })
	t.row(Row{Name: "the agent itself"}, func(q *question) []float64 { return q.only(q.chosen) })
}

// scores returns a score of each candidate.
func (q *question) scores(of func(i int) float64) []float64 {
	out := make([]float64, len(q.candidates))
	for i := range out {
		out[i] = of(i)
	}
	return out
}

// only returns scores that choose candidate i, or nil if i is -1.
func (q *question) only(i int) []float64 {
	if i < 0 {
		return nil
	}
	scores := make([]float64, len(q.candidates))
	scores[i] = 1
	return scores
}

// row adds a row. choose returns scores of the candidates, or nil for no choice; of the candidates with the highest
// score, one is drawn.
func (t *table) row(row Row, choose func(*question) []float64) {
	hits, counts, chosen := map[string][]float64{}, map[string][]float64{}, map[string]bool{}
	for _, c := range t.report.Columns {
		hits[c.Kind], counts[c.Kind] = make([]float64, t.report.Parts), make([]float64, t.report.Parts)
	}
	for i := range t.questions {
		q := &t.questions[i]
		part := t.partOf[q.group]
		scores := choose(q)
		chosen[q.kind] = chosen[q.kind] || scores != nil
		hits[q.kind][part] += q.hit(scores)
		counts[q.kind][part]++
	}
	for _, c := range t.report.Columns {
		if !chosen[c.Kind] {
			row.Hits = append(row.Hits, nil)
			continue
		}
		share := &Share{Low: 1}
		for part, n := range counts[c.Kind] {
			if n == 0 {
				continue
			}
			share.Mean += hits[c.Kind][part] / float64(c.States)
			share.Low, share.High = min(share.Low, hits[c.Kind][part]/n), max(share.High, hits[c.Kind][part]/n)
		}
		row.Hits = append(row.Hits, share)
	}
	t.report.Rows = append(t.report.Rows, row)
}

// hit returns the probability that the choice is right.
func (q *question) hit(scores []float64) float64 {
	best, right, n := math.Inf(-1), 0.0, 0.0
	for i, s := range scores {
		if s > best {
			best, right, n = s, 0, 0
		}
		if s == best {
			n++
			if q.right[i] {
				right++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return right / n
}
