package overlap

import (
	"cmp"
	"slices"
)

// Thresholds for texts that count as the same.
const (
	// MinRuns is the number of runs that both texts must have for a comparison, and the number of runs of 13 words
	// that they must share. Coincidences are shorter.
	MinRuns = 8
	// MaxSharing is the number of texts of a benchmark that may share a run. A run that occurs in more texts is part
	// of a template, and is ignored.
	MaxSharing = 2
	// GramShare is the share of the shorter text's runs of 13 words that must also occur in the other text. NearShare
	// is the smallest estimated Jaccard similarity of signatures. Different issues and fixes of SWE-bench reach 0.54
	// and 0.29 (see docs/contamination.md).
	GramShare = 0.6
	NearShare = 0.6
)

// Match is the most similar text in an index. The zero Match means that there is none.
type Match struct {
	Name  string  // name of the text
	Share float64 // similarity, from 0 to 1
}

// Index finds the most similar of many texts. Add all texts, then call Seal; after that, an Index is safe for
// concurrent use. It needs about 20 bytes for each run of 13 words and 2 KiB for each text.
type Index struct {
	names    []string
	hashes   []TextHashes
	grams    []uint64 // of all texts, sorted
	texts    []uint32 // the text of each gram
	starts   []uint32 // starts[i] is the index of the first gram whose upper 16 bits are at least i
	distinct []int    // for each text, the number of its runs that are not part of a template
	lanes    [minima][]minimum
}

// minimum is one value of a text's signature. The minima of all texts at one position of the signature form a lane,
// sorted by value.
type minimum struct {
	value uint32
	text  uint32
}

// Add adds a text. Each name must be added only once.
func (x *Index) Add(name string, p TextHashes) {
	x.names, x.hashes = append(x.names, name), append(x.hashes, p)
}

// Texts returns the numbers of texts that can be found by runs of 13 words and by signature. Call Seal first.
func (x *Index) Texts() (grams, near int) {
	for i, p := range x.hashes {
		if x.distinct[i] >= MinRuns {
			grams++
		}
		if p.Shingles >= MinRuns {
			near++
		}
	}
	return grams, near
}

// Seal prepares the index for Find. No text may be added after that.
func (x *Index) Seal() {
	type run struct {
		gram uint64
		text uint32
	}
	var all []run
	x.distinct = make([]int, len(x.hashes))
	for i, p := range x.hashes {
		for _, g := range p.Grams {
			all = append(all, run{g, uint32(i)})
		}
		x.distinct[i] = len(p.Grams)
		if p.Shingles < MinRuns {
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
		texts := x.textsWith(x.grams[i])
		if len(texts) > MaxSharing {
			for _, text := range texts {
				x.distinct[text]--
			}
		}
		i += len(texts)
	}
	for i := range x.hashes {
		x.hashes[i].Grams = nil
	}
	for _, lane := range x.lanes {
		slices.SortFunc(lane, func(a, b minimum) int { return cmp.Compare(a.value, b.value) })
	}
}

// textsWith returns the texts that contain a run, in no particular order.
func (x *Index) textsWith(gram uint64) []uint32 {
	from := int(x.starts[gram>>48])
	bucket := x.grams[from:x.starts[gram>>48+1]]
	at, _ := slices.BinarySearch(bucket, gram)
	to := at
	for to < len(bucket) && bucket[to] == gram {
		to++
	}
	return x.texts[from+at : from+to]
}

// Find returns the text that shares most runs of 13 words with the given one, and the text with the most similar
// signature. Of equally similar texts, it returns the first by name.
func (x *Index) Find(p TextHashes) (grams, near Match) {
	if len(p.Grams) >= MinRuns {
		grams = x.byGrams(p.Grams)
	}
	if p.Shingles >= MinRuns {
		near = x.bySignature(p.Signature)
	}
	return grams, near
}

func (x *Index) byGrams(list []uint64) Match {
	distinct, shared := len(list), map[uint32]int{}
	for _, g := range list {
		texts := x.textsWith(g)
		if len(texts) > MaxSharing {
			distinct--
			continue
		}
		for _, text := range texts {
			shared[text]++
		}
	}
	var best Match
	for text, n := range shared {
		if shorter := min(distinct, x.distinct[text]); n >= MinRuns {
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

// better returns the match with the larger share, or of equal ones the first by name.
func (m Match) better(o Match) Match {
	if o.Share > m.Share || o.Share == m.Share && o.Name < m.Name {
		return o
	}
	return m
}
