package overlap

import (
	"cmp"
	"slices"
)

// From when on a text counts as that of another.
const (
	// Least is how many runs both texts must have for them to be compared, and
	// how many of 13 words must be the same: accidents are shorter.
	Least = 8
	// Common is how many texts of a benchmark may share a run; one that stands in
	// more is a form that is filled in, and counts for none of them.
	Common = 2
	// GramShare is the share of the shorter text's runs of 13 words that must
	// stand in the other, NearShare the estimated Jaccard similarity. Different
	// issues and fixes of SWE-bench reach 0.54 and 0.29 (docs/contamination.md).
	GramShare = 0.6
	NearShare = 0.6
)

// Match is the text that is most like the one asked for. It is none where Share
// is 0.
type Match struct {
	Of    string
	Share float64 // 0 to 1
}

// Index finds the most similar of many texts. Add them all, then Seal it; from
// then on it is safe for concurrent use. It takes some 20 bytes for each run of
// 13 words and 2 KiB for each text.
type Index struct {
	names    []string
	prints   []Print
	grams    []uint64 // of all texts, sorted
	texts    []uint32 // the text of each of them
	starts   []uint32 // where those begin whose upper 16 bits are at least the position
	distinct []int    // runs of each text that are no form
	lanes    [minima][]minimum
}

// minimum of a text, in one lane of the signatures.
type minimum struct {
	value uint32
	text  uint32
}

// Add puts a text in; each name is added once.
func (x *Index) Add(name string, p Print) {
	x.names, x.prints = append(x.names, name), append(x.prints, p)
}

// Texts is how many there are that can be found by runs of 13 words, and how many
// by signature.
func (x *Index) Texts() (grams, near int) {
	for i, p := range x.prints {
		if x.distinct[i] >= Least {
			grams++
		}
		if p.Shingles >= Least {
			near++
		}
	}
	return grams, near
}

// Seal ends the adding.
func (x *Index) Seal() {
	type run struct {
		gram uint64
		text uint32
	}
	var all []run
	x.distinct = make([]int, len(x.prints))
	for i, p := range x.prints {
		for _, g := range p.Grams {
			all = append(all, run{g, uint32(i)})
		}
		x.distinct[i] = len(p.Grams)
		if p.Shingles < Least {
			continue
		}
		for lane, v := range p.Signature {
			x.lanes[lane] = append(x.lanes[lane], minimum{v, uint32(i)})
		}
	}
	slices.SortFunc(all, func(a, b run) int { return cmp.Compare(a.gram, b.gram) })
	x.grams, x.texts = make([]uint64, len(all)), make([]uint32, len(all))
	for i, r := range all {
		x.grams[i], x.texts[i] = r.gram, r.text
	}
	x.starts = make([]uint32, 1<<16+1)
	for top, at := 0, 0; top < len(x.starts); top++ {
		for at < len(x.grams) && x.grams[at]>>48 < uint64(top) {
			at++
		}
		x.starts[top] = uint32(at)
	}
	for i := 0; i < len(all); {
		having := x.having(x.grams[i])
		if len(having) > Common {
			for _, text := range having {
				x.distinct[text]--
			}
		}
		i += len(having)
	}
	for i := range x.prints {
		x.prints[i].Grams = nil
	}
	for _, lane := range x.lanes {
		slices.SortFunc(lane, func(a, b minimum) int { return cmp.Compare(a.value, b.value) })
	}
}

// having are the texts with a run, in no order.
func (x *Index) having(gram uint64) []uint32 {
	from := int(x.starts[gram>>48])
	near := x.grams[from:x.starts[gram>>48+1]]
	at, _ := slices.BinarySearch(near, gram)
	to := at
	for to < len(near) && near[to] == gram {
		to++
	}
	return x.texts[from+at : from+to]
}

// Find is the text with which one has the largest share of runs of 13 words in
// common, and the one whose signature is most like its own; of equal ones the
// first by name.
func (x *Index) Find(p Print) (grams, near Match) {
	if len(p.Grams) >= Least {
		grams = x.byGrams(p.Grams)
	}
	if p.Shingles >= Least {
		near = x.bySignature(p.Signature)
	}
	return grams, near
}

func (x *Index) byGrams(list []uint64) Match {
	own, shared := len(list), map[uint32]int{}
	for _, g := range list {
		having := x.having(g)
		if len(having) > Common {
			own--
			continue
		}
		for _, text := range having {
			shared[text]++
		}
	}
	var best Match
	for text, n := range shared {
		if shorter := min(own, x.distinct[text]); n >= Least {
			best = best.better(Match{x.names[text], float64(n) / float64(shorter)})
		}
	}
	return best
}

func (x *Index) bySignature(s Signature) Match {
	same := make([]uint8, len(x.names)) // at most 128
	for i, lane := range x.lanes {
		at, _ := slices.BinarySearchFunc(lane, s[i], func(m minimum, v uint32) int { return cmp.Compare(m.value, v) })
		for ; at < len(lane) && lane[at].value == s[i]; at++ {
			same[lane[at].text]++
		}
	}
	var best Match
	for text, n := range same {
		if n > 0 {
			best = best.better(Match{x.names[text], float64(n) / minima})
		}
	}
	return best
}

func (m Match) better(o Match) Match {
	if o.Share > m.Share || o.Share == m.Share && o.Of < m.Of {
		return o
	}
	return m
}
