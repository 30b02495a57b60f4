package redact

// find returns the secrets of a text in order and without overlaps. It stops early if the work
// exceeds its budget.
func find(text string, work *meter) []span {
	f := &finder{text: text, lower: lower(text), work: work}
	work.spend(len(text) / 4)
	f.placeholders = placeholder.FindAllStringIndex(text, -1)
	d := compiled()
	d.trie.Walk(f.lower, func(end, n, pattern int64) bool {
		k := &d.keywords[pattern]
		from, to := int(end-n+1), int(end+1)
		if f.inPlaceholder(from) {
			return true
		}
		for _, r := range k.rules {
			f.runRule(r, from, to)
		}
		for _, look := range k.looks {
			look(f, from, to)
		}
		return !work.over()
	})
	return f.separate()
}
