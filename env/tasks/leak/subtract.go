package leak

import (
	"path"
	"strings"
)

// readSource records the code of a file, and the needles that this code contains.
func (n *needles) readSource(name, raw string) {
	if Leftover(name) {
		return
	}
	sameExt := false
	for _, c := range n.changes {
		sameExt = sameExt || path.Ext(c.Path) == path.Ext(name)
	}
	python := isPython(name)
	if !python && (!sameExt || proseExt(name)) {
		return
	}
	t := n.read(raw, python)
	n.exactHits(t.raw, t.toks, func(h hit) {
		if h.kind == linePair {
			if x := n.byKind[linePair][h.hash]; x != nil && !n.changed[name] {
				x.files++
			}
		}
	})
	list := functions(t.code)
	if python {
		n.usage.addCode(t.code, list)
	}
	stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
	module := stem
	if !python || n.changed[name] || entryModule.MatchString(stem) || strings.Contains("/"+name, "/tests/") {
		module = ""
	}
	var hits []occurrence
	n.removeCode(t, func(h hit) bool {
		p := occurrence{kind: h.kind, hash: h.hash, module: module}
		if f := enclosing(list, h.first); f != nil && !f.decorated && !frameworkName.MatchString(f.name) {
			p.name = f.name
		}
		hits = append(hits, p)
		return false
	})
	n.usage.occurrences = append(n.usage.occurrences, hits...)
}

// subtract removes the needles that code in use contains, and pairs of lines that more than two files contain.
func (n *needles) subtract() {
	s := n.usage
	for _, p := range s.occurrences {
		if (p.module == "" || s.imported[p.module]) && (p.name == "" || s.named[p.name] > s.defined[p.name]) {
			delete(n.byKind[p.kind], p.hash)
		}
	}
	for hash, x := range n.byKind[linePair] {
		if x.files > 2 {
			delete(n.byKind[linePair], hash)
		}
	}
}
