package provenance

// Groups groups repositories that share something, such as a function. sharing maps whatever is shared to the names of
// the repositories that have it. The result maps each name to the first name, in sorted order, of its group. It does
// not contain names that share nothing with another one.
func Groups(sharing map[string][]string) map[string]string {
	parents := map[string]string{} // a disjoint-set forest; the root of each tree is the first name of its group
	var find func(string) string
	find = func(name string) string {
		parent, known := parents[name]
		if !known || parent == name {
			return name
		}
		parents[name] = find(parent)
		return parents[name]
	}
	for _, names := range sharing {
		for _, other := range names {
			if a, b := find(names[0]), find(other); a != b {
				parents[a], parents[b] = min(a, b), min(a, b)
			}
		}
	}
	out := map[string]string{}
	for name := range parents {
		out[name] = find(name)
	}
	return out
}
