package learn

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// feature is an index of the weights of a model. All features are binary.
type feature = uint16

// features returns the features of every candidate of a state. They come from the shown lines and the
// output of the tests alone: no column of the dataset is among them. The order of reading is not either,
// because the oracle, which knows the fix, reads the right function last. Nor are words, because those
// of one repository say little about another one.
func features(s state) [][]feature {
	v := newView(s)
	out := make([][]feature, len(s.candidates))
	for i := range s.candidates {
		var b bag
		v.add(&b, i)
		slices.Sort(b)
		out[i] = slices.Compact(b)
	}
	return out
}

// bag collects features. A feature is the 16-bit FNV-1a hash of its name.
type bag []feature

func (b *bag) add(parts ...string) {
	h := fnv.New32a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // never fails
		_, _ = h.Write([]byte{0})
	}
	sum := h.Sum32()
	*b = append(*b, feature(sum>>16^sum))
}

// view holds what the features of a state's candidates have in common.
type view struct {
	state
	rarity   map[string]float64 // log(n / n_w) of a word in n_w of n candidates
	distance map[*function]int  // calls from the failing test, as far as names show
	inTest   []float64          // rarity of the words that a candidate shares with the test
	inError  []float64          // the same for the message
	rank     map[*function]int  // functions by the rarity of shared words, from 0
	lineRank []int              // the same for the candidates of a function
	ochiai   map[*function]int  // functions by their highest Ochiai score, from 0; those without a score are missing
}

func newView(s state) *view {
	v := &view{state: s, rarity: map[string]float64{}, rank: map[*function]int{}}
	for _, c := range s.candidates {
		for _, w := range c.words {
			v.rarity[w]++
		}
	}
	for w, n := range v.rarity {
		v.rarity[w] = math.Log(float64(len(s.candidates)) / n)
	}
	var known []*function
	overlap := map[*function]float64{}
	for _, c := range s.candidates {
		if f := c.function; f != nil && !slices.Contains(known, f) {
			known = append(known, f)
			for _, w := range f.words {
				if s.failure.test[w] || s.failure.message[w] {
					overlap[f] += v.rarity[w]
				}
			}
			overlap[f] /= 1 + math.Log(float64(1+len(f.words)))
		}
		v.inTest = append(v.inTest, v.shared(c.words, s.failure.test))
		v.inError = append(v.inError, v.shared(c.words, s.failure.message))
	}
	for _, f := range known {
		for _, g := range known {
			if overlap[g] > overlap[f] {
				v.rank[f]++
			}
		}
	}
	v.distances(known)
	v.ochiai = map[*function]int{}
	for l, score := range s.failure.ochiai {
		for _, c := range s.candidates {
			if c.function != nil && c.contains(l) {
				rank := 0
				for _, other := range s.failure.ochiai {
					if other > score {
						rank++
					}
				}
				if old, ok := v.ochiai[c.function]; !ok || rank < old {
					v.ochiai[c.function] = rank
				}
			}
		}
	}
	v.lineRank = make([]int, len(s.candidates))
	for i, c := range s.candidates {
		for j, d := range s.candidates {
			if c.function == d.function && v.inTest[j]+v.inError[j] > v.inTest[i]+v.inError[i] {
				v.lineRank[i]++
			}
		}
	}
	return v
}

func (v *view) shared(words []string, with map[string]bool) (sum float64) {
	for _, w := range words {
		if with[w] {
			sum += v.rarity[w]
		}
	}
	return sum
}

// farAway is the distance of functions that no chain of names connects with the test.
const farAway = 5

// distances fills in the distances by a breadth-first search: a function is called by its name, or by
// the name of its class if it is __init__.
func (v *view) distances(known []*function) {
	v.distance = map[*function]int{}
	callers := []map[string]bool{v.failure.test}
	for d := range farAway {
		var next []map[string]bool
		for _, f := range known {
			name := strings.ToLower(f.name)
			if f.name == "__init__" {
				name = strings.ToLower(f.class)
			}
			if _, ok := v.distance[f]; !ok && slices.ContainsFunc(callers, func(words map[string]bool) bool { return words[name] }) {
				v.distance[f] = d
				next = append(next, f.has)
			}
		}
		callers = next
	}
	for _, f := range known {
		if _, ok := v.distance[f]; !ok {
			v.distance[f] = farAway
		}
	}
}

// add adds the features of candidate i.
func (v *view) add(b *bag, i int) {
	c := &v.candidates[i]
	kind := kindOfStatement(c.tokens)
	trace := v.trace(c)
	inTest, inError := level(v.inTest[i]), level(v.inError[i])
	b.add("kind", kind)
	b.add("trace", trace)
	b.add("test", inTest)
	b.add("error", inError)
	b.add("test, error", inTest, inError)
	b.add("kind, test", kind, inTest)
	b.add("exception, kind", v.failure.exception, kind)
	b.add("line rank", small(v.lineRank[i]))
	if c.function != nil {
		v.addFunction(b, i, kind, trace)
	}
	for j, t := range c.tokens {
		shape := shapeOf(t)
		b.add("token", shape)
		if j+1 < len(c.tokens) {
			b.add("tokens", shape, shapeOf(c.tokens[j+1]))
		}
	}
	b.add("length", small(len(c.tokens)/4))
}

// addFunction adds the features of a candidate that depend on its function.
func (v *view) addFunction(b *bag, i int, kind, trace string) {
	c := &v.candidates[i]
	f := c.function
	distance, rank, size := small(v.distance[f]), small(v.rank[f]), small(f.statements/4)
	place := "middle"
	switch {
	case c.place == 0:
		place = "first"
	case c.place == f.statements-1:
		place = "last"
	}
	depth := small((c.indent - f.indent) / 2)
	if len(v.failure.ochiai) > 0 {
		score := "none"
		if rank, ok := v.ochiai[f]; ok {
			score = small(rank)
		}
		value, listed := v.score(c)
		b.add("ochiai", score)
		b.add("ochiai, line", score, strconv.FormatBool(listed))
		b.add("ochiai, value", strconv.Itoa(int(4*value)), score)
		b.add("ochiai, rank", score, rank)
	}
	b.add("place", place)
	b.add("place, size", place, size)
	b.add("place, kind", place, kind)
	b.add("quarter", small(4*c.place/f.statements))
	b.add("depth", depth)
	b.add("depth, kind", depth, kind)
	b.add("distance", distance)
	b.add("distance, trace", distance, trace)
	b.add("rank", rank)
	b.add("rank, distance", rank, distance)
	b.add("size", size)
	if strings.HasPrefix(f.name, "__") {
		b.add("special", f.name)
	}
}

// score returns the Ochiai score of a candidate. ok is false if the agent saw no score for it.
func (s *state) score(c *statement) (highest float64, ok bool) {
	for l, score := range s.failure.ochiai {
		if c.contains(l) {
			highest, ok = max(highest, score), true
		}
	}
	return highest, ok
}

// trace says where the traceback of the failing test has a candidate.
func (v *view) trace(c *statement) string {
	out := "none"
	for i, l := range v.failure.frames {
		if l.file != c.file {
			continue
		}
		if c.contains(l) {
			if i == len(v.failure.frames)-1 {
				return "innermost"
			}
			return "line"
		}
		out = "file"
	}
	return out
}

// level returns the size of a sum of rarities: 0, below 2, below 4 and so on.
func level(x float64) string {
	if x == 0 {
		return "0"
	}
	return strconv.Itoa(1 + min(4, int(x/2)))
}

// small formats a number of which large values do not differ.
func small(n int) string { return strconv.Itoa(min(n, 6)) }

var keywords = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq("and as assert async await break class continue def del elif else except False finally for from global if import in is " +
		"lambda None nonlocal not or pass raise return self True try while with yield len range int str list dict set tuple min max sum any all sorted " +
		"isinstance get append enumerate zip split strip join startswith endswith lower upper pop super") {
		keywords[w] = true
	}
}

// shapeOf returns a token without what differs between programs: names are n, and numbers above 2 are 9.
func shapeOf(t string) string {
	switch c := t[0]; {
	case keywords[t]:
		return t
	case '0' <= c && c <= '9':
		if t == "0" || t == "1" || t == "2" {
			return t
		}
		return "9"
	case isWord(c):
		return "n"
	}
	return t
}

// kindOfStatement returns the keyword of a statement, assign, augment, call or expression.
func kindOfStatement(tokens []string) string {
	if keywords[tokens[0]] && tokens[0] != "self" && tokens[0] != "super" {
		return tokens[0]
	}
	depth := 0
	for _, t := range tokens {
		switch t {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "=":
			if depth == 0 {
				return "assign"
			}
		default:
			if len(t) > 1 && strings.HasSuffix(t, "=") && !strings.Contains("== != <= >=", t) && depth == 0 {
				return "augment"
			}
		}
	}
	if slices.Contains(tokens, "(") {
		return "call"
	}
	return "expression"
}
