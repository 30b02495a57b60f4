package provenance

// Groups groups repositories that share something, such as a function (key -> names of the
// repositories that have it). It maps each name to the first name, in sorted order, of its group.
// A name that shares nothing is absent.
func Groups(having map[string][]string) map[string]string {
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
