package provenance

// Together groups repositories that have something in common, such as a function
// (key -> names of those that have it): each name leads to the first, in order, of
// all that hang together with it. A name that shares nothing is absent.
func Together(having map[string][]string) map[string]string {
	first := map[string]string{}
	var find func(string) string
	find = func(name string) string {
		up, known := first[name]
		if !known || up == name {
			return name
		}
		first[name] = find(up)
		return first[name]
	}
	for _, names := range having {
		for _, other := range names {
			if a, b := find(names[0]), find(other); a != b {
				first[a], first[b] = min(a, b), min(a, b)
			}
		}
	}
	out := map[string]string{}
	for name := range first {
		out[name] = find(name)
	}
	return out
}
