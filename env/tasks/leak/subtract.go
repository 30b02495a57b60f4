package leak

import (
	"path"
	"strings"
)

// readSource notes the code of a file, and the parts of the fix in it.
func (n *needles) readSource(name, raw string) {
	if Leftover(name) {
		return
	}
	same := false
	for _, c := range n.changes {
		same = same || path.Ext(c.Path) == path.Ext(name)
	}
	python := isPython(name)
	if !python && (!same || proseExt(name)) {
		return
	}
	t := n.read(raw, python)
	n.exactHits(t.raw, t.toks, func(h hit) {
		if h.way == pair {
			if x := n.of[pair][h.hash]; x != nil && !n.own[name] {
				x.files++
			}
		}
	})
	list := functions(t.code)
	if python {
		n.source.uses(t.code, list)
	}
	stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
	module := stem
	if !python || n.own[name] || program.MatchString(stem) || strings.Contains("/"+name, "/tests/") {
		module = ""
	}
	var hits []place
	n.forget(t, func(h hit) bool {
		p := place{way: h.way, hash: h.hash, module: module}
		if f := enclosing(list, h.first); f != nil && !f.decorated && !called.MatchString(f.name) {
			p.name = f.name
		}
		hits = append(hits, p)
		return false
	})
	n.source.seen = append(n.source.seen, hits...)
}

// subtract drops the parts that code in use has.
func (n *needles) subtract() {
	s := n.source
	for _, p := range s.seen {
		if (p.module == "" || s.imported[p.module]) && (p.name == "" || s.named[p.name] > s.defined[p.name]) {
			delete(n.of[p.way], p.hash)
		}
	}
	for hash, x := range n.of[pair] {
		if x.files > 2 {
			delete(n.of[pair], hash)
		}
	}
}
