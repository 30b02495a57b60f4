package mutate

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Composition is a set of sites to change in one mutation.
type Composition struct {
	Sites []Site // by position; they do not overlap
	// Scope says where the sites are: in one function ("function"), in two functions of which
	// one calls the other ("chain"), or in one file ("file").
	Scope string
}

// ComposeSpec says which sites to combine.
type ComposeSpec struct {
	Sites []Site // sites that are known to make good bugs on their own
	Parts int    // number of sites in a composition, 2 to 4
	N     int    // number of compositions
	Seed  uint64
	// Calls maps a function ("file::name") to the functions that it calls. Without Calls, there
	// are no compositions with the scope "chain".
	Calls map[string][]string
}

// Compose returns up to N random combinations of sites, whose scopes are in turn "function", "chain"
// and "file". Each set of sites occurs once. The result depends only on spec.
func Compose(spec ComposeSpec) []Composition {
	sites := slices.Clone(spec.Sites)
	slices.SortFunc(sites, compare)
	r := rand.New(rand.NewPCG(spec.Seed, 0x636f6d706f7365))
	groups := [][][]Site{
		groupBy(sites, func(s Site) string { return s.File + "::" + s.Func }),
		chains(sites, spec.Calls),
		groupBy(sites, func(s Site) string { return s.File }),
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
		key := setKey(picked)
		if len(picked) < 2 || len(picked) != spec.Parts || seen[key] {
			misses++
			continue
		}
		seen[key] = true
		out = append(out, Composition{Sites: picked, Scope: []string{"function", "chain", "file"}[kind]})
	}
	return out
}

// groupBy returns the groups of at least two sites with the same key, in the order of their first
// sites.
func groupBy(sites []Site, key func(Site) string) [][]Site {
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

// chains returns, for each call, the sites of the caller and the callee.
func chains(sites []Site, calls map[string][]string) [][]Site {
	byFunc := map[string][]Site{}
	for _, s := range sites {
		byFunc[s.File+"::"+s.Func] = append(byFunc[s.File+"::"+s.Func], s)
	}
	var out [][]Site
	for _, caller := range slices.Sorted(maps.Keys(byFunc)) {
		for _, callee := range calls[caller] {
			if callee != caller && len(byFunc[callee]) > 0 {
				out = append(out, slices.Concat(byFunc[caller], byFunc[callee]))
			}
		}
	}
	return out
}

// pick returns up to n random sites that do not overlap.
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

// overlaps reports whether the texts of two sites overlap or touch, so that they cannot be changed
// together.
func (s Site) overlaps(o Site) bool {
	return s.File == o.File && s.Start <= o.End && o.Start <= s.End
}

func setKey(sites []Site) string {
	var key string
	for _, s := range sites {
		key += s.ID
	}
	return key
}
