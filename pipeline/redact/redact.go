// Package redact takes secrets out of text. One set of rules serves staging, which
// replaces what it finds, and publishing and exports, which hold back what still
// holds something: exact values that are known (of settings, of the
// environment), and what secrets look like.
package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Redactor replaces secrets by [REDACTED:type:n], n counting the different
// values of a type in the order they were met: the same secret is the same
// placeholder all through an episode. A value that was told by the name it was
// assigned to is learned: where it stands without its name, a redactor that has
// learned it finds it too. One goroutine uses it.
type Redactor struct {
	known   []*Known // of the run, and what was learned before
	learned map[string]string
	aws     bool // there is an AWS key: look for its secret half
	names   map[string]string
	counts  map[string]int  // placeholders written, by type
	kinds   map[string]int  // different values, by type
	n       int             // placeholders written since the last take
	clear   map[string]bool // long texts in which there was nothing
	work    *meter          // of the text in hand
}

const (
	withheld = "withheld" // the type of a text that would take too much work to search
	// maxLearned bounds what an episode may teach.
	maxLearned = 1000
	maxDepth   = 2 // nested texts in base64
)

// New makes a redactor for one episode or message. known may be nil.
func New(known *Known) *Redactor {
	r := &Redactor{learned: map[string]string{}, names: map[string]string{}, counts: map[string]int{}, kinds: map[string]int{}, clear: map[string]bool{}}
	if known != nil {
		r.known = []*Known{known}
	}
	return r
}

// Wiser is a fresh redactor that knows from the start what this one has
// learned; nil if that is nothing.
func (r *Redactor) Wiser(known *Known) *Redactor {
	if len(r.learned) == 0 && !r.aws {
		return nil
	}
	w := New(known)
	more := &Known{}
	for _, value := range slices.Sorted(maps.Keys(r.learned)) {
		more.add(value, r.learned[value])
	}
	w.known, w.aws = append(w.known, more.ready()), r.aws
	return w
}

// Text replaces the secrets of a text. A text that would take more work than its
// length allows is replaced as a whole.
func (r *Redactor) Text(s string) string {
	written := r.n
	r.work = &meter{budget: atLeast + perByte*len(s)}
	out := r.binaries(r.layers(s, 0))
	if r.work.over() {
		return r.place(withheld, s)
	}
	if len(s) >= longText && r.n == written && out == s {
		r.clear[s] = true
	}
	return out
}

// longText is from how many bytes on it is worth while to remember that a text is clear.
const longText = 32

// layers replaces the secrets that a text says as they are, and those in what it
// holds encoded.
func (r *Redactor) layers(s string, depth int) string {
	if s = r.plain(s); depth < maxDepth && !r.work.over() {
		s = r.encoded(s, depth)
	}
	return s
}

// plain replaces the secrets that a text says as they are.
func (r *Redactor) plain(s string) string {
	for _, k := range r.known {
		s = r.replace(s, k.find(s), k.values)
	}
	found := find(s, r.work)
	for _, h := range found {
		if r.aws = r.aws || h.kind == awsKey; h.learn && len(r.learned) < maxLearned {
			r.learned[s[h.from:h.to]] = h.kind
		}
	}
	var again Known
	for _, h := range found {
		if h.learn && len(again.forms) < maxLearned {
			again.forms = append(again.forms, form{s[h.from:h.to], h.kind, len(again.values)})
			again.values = append(again.values, s[h.from:h.to])
		}
	}
	if s = r.replace(s, found, nil); len(again.forms) > 0 {
		r.work.spend(len(s)/8 + len(again.forms)*perName)
		again.ready()
		s = r.replace(s, again.find(s), again.values)
	}
	if r.aws {
		found = halves(s)
		for _, h := range found {
			r.learned[s[h.from:h.to]] = h.kind
		}
		s = r.replace(s, found, nil)
	}
	return s
}

// replace puts placeholders for spans, which stand for themselves or, if they are
// forms of known values, for these.
func (r *Redactor) replace(s string, spans []span, values []string) string {
	if len(spans) == 0 {
		return s
	}
	var out strings.Builder
	at := 0
	for _, h := range spans {
		value := s[h.from:h.to]
		if values != nil {
			value = values[h.value]
		}
		out.WriteString(s[at:h.from])
		out.WriteString(r.place(h.kind, value))
		at = h.to
	}
	out.WriteString(s[at:])
	return out.String()
}

func (r *Redactor) place(kind, value string) string {
	r.counts[kind]++
	r.n++
	key := kind + "\x00" + value
	if r.names[key] == "" {
		r.kinds[kind]++
		r.names[key] = fmt.Sprintf(marker+"%s:%d]", kind, r.kinds[kind])
	}
	return r.names[key]
}

// Take returns how many placeholders were written since the last call.
func (r *Redactor) Take() int32 {
	n := r.n
	r.n = 0
	return int32(n)
}

// Written is how many placeholders were written since the last Take.
func (r *Redactor) Written() int { return r.n }

// Counts are all placeholders that were written, by type.
func (r *Redactor) Counts() map[string]int { return maps.Clone(r.counts) }
