package mutate

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Composition is several mutations made as one.
type Composition struct {
	Sites []Site // in order of their places; none overlap
	// Scope is what they share: function, file, or chain (functions that call each other).
	Scope string
}

// ComposeSpec says what to combine.
type ComposeSpec struct {
	Sites []Site // single mutations that were found to be good bugs
	Parts int    // 2 to 4
	N     int    // number of compositions
	Seed  uint64
	// Calls are the functions that a function calls, by "file::name", for chains;
	// nil: none.
	Calls map[string][]string
}

// Compose picks combinations of sites: in turn of one function, of functions that call each other,
// and of one file. Each set of sites occurs once. The result depends on the specification alone, and
// may have fewer than N compositions.
func Compose(spec ComposeSpec) []Composition {
	sites := slices.Clone(spec.Sites)
	slices.SortFunc(sites, compare)
	r := rand.New(rand.NewPCG(spec.Seed, 0x636f6d706f7365))
	groups := [][][]Site{
		grouped(sites, func(s Site) string { return s.File + "::" + s.Func }),
		chains(sites, spec.Calls),
		grouped(sites, func(s Site) string { return s.File }),
	}
	seen := map[string]bool{}
	var out []Composition
	for misses := 0; len(out) < spec.N && misses < 20*spec.N+100; {
		kind := (len(out) + misses) % len(groups)
		if len(groups[kind]) == 0 {
			misses++
			continue
		}
		group := groups[kind][r.IntN(len(groups[kind]))]
		picked := pick(r, group, spec.Parts)
		key := keyOf(picked)
		if len(picked) < 2 || len(picked) != spec.Parts || seen[key] {
			misses++
			continue
		}
		seen[key] = true
		out = append(out, Composition{Sites: picked, Scope: []string{"function", "chain", "file"}[kind]})
	}
	return out
}

// grouped returns the groups of at least two sites with the same key, in the order of their first
// sites.
func grouped(sites []Site, key func(Site) string) [][]Site {
	at := map[string]int{}
	var all [][]Site
	for _, s := range sites {
		k := key(s)
		i, ok := at[k]
		if !ok {
			i = len(all)
			at[k], all = i, append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return slices.DeleteFunc(all, func(g []Site) bool { return len(g) < 2 })
}

// chains groups the sites of a function with those of the functions it calls.
func chains(sites []Site, calls map[string][]string) [][]Site {
	by := map[string][]Site{}
	for _, s := range sites {
		by[s.File+"::"+s.Func] = append(by[s.File+"::"+s.Func], s)
	}
	var out [][]Site
	for _, caller := range slices.Sorted(maps.Keys(by)) {
		for _, callee := range calls[caller] {
			if callee != caller && len(by[callee]) > 0 {
				out = append(out, slices.Concat(by[caller], by[callee]))
			}
		}
	}
	return out
}

// pick draws up to n sites that do not overlap.
func pick(r *rand.Rand, group []Site, n int) []Site {
	var out []Site
	for _, i := range r.Perm(len(group)) {
		s := group[i]
		if len(out) < n && !slices.ContainsFunc(out, s.overlaps) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// overlaps reports whether two sites cannot be changed together, because their texts overlap or
// touch.
func (s Site) overlaps(o Site) bool {
	return s.File == o.File && s.Start <= o.End && o.Start <= s.End
}

func keyOf(sites []Site) string {
	var key string
	for _, s := range sites {
		key += s.ID
	}
	return key
}
