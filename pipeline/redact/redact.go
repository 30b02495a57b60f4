// Package redact finds secrets in text: known values from settings and the environment, and
// values that look like secrets. Before episodes are staged, a Redactor replaces the secrets.
// Before data is published or exported, a Checker finds objects that still contain one, which
// are then withheld.
//
// rules.go compiles rules from data to a dictionary of keywords. search.go looks for the
// keywords in a text and runs the finder at each: rules (finder.go), names of secrets
// (assign.go, places.go, names.go), calls and commands with secret arguments (calls.go,
// commands.go) and private keys (pem.go). read.go reads the value and values.go judges
// it.
package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Redactor replaces secrets by [REDACTED:type:n], where n numbers the different values
// of a type, so that a secret has the same placeholder in the whole episode. It learns
// values that it recognized by their name; WithLearned returns a redactor that finds them
// without their name. A Redactor is not safe for concurrent use.
type Redactor struct {
	known   []*Known          // known values of the run, and values that an earlier redactor learned
	learned map[string]string // type by value
	aws     bool              // an AWS access key ID was found: look for secret access keys
	names   map[string]string // placeholder by type and value
	counts  map[string]int    // placeholders written, by type
	kinds   map[string]int    // different values, by type
	n       int               // placeholders written since the last Take
	clear   map[string]bool   // long texts without secrets
	work    *meter            // of the current text
}

const (
	withheld   = "withheld" // type of a text that takes too much work to search
	maxLearned = 1000       // maximum number of learned values of an episode
	maxDepth   = 2          // maximum depth of base64 within base64
)

// New returns a redactor for one episode or message. known may be nil.
func New(known *Known) *Redactor {
	r := &Redactor{learned: map[string]string{}, names: map[string]string{}, counts: map[string]int{}, kinds: map[string]int{}, clear: map[string]bool{}}
	if known != nil {
		r.known = []*Known{known}
	}
	return r
}

// WithLearned returns a new redactor that knows the values that r has learned. It returns nil if
// r has learned none.
func (r *Redactor) WithLearned(known *Known) *Redactor {
	if len(r.learned) == 0 && !r.aws {
		return nil
	}
	w := New(known)
	more := &Known{}
	for _, value := range slices.Sorted(maps.Keys(r.learned)) {
		more.add(value, r.learned[value])
	}
	w.known, w.aws = append(w.known, more.build()), r.aws
	return w
}

// Text replaces the secrets in a text. It replaces the whole text if searching it takes more work
// than its length allows.
func (r *Redactor) Text(s string) string {
	written := r.n
	r.work = &meter{budget: atLeast + perByte*len(s)}
	out := r.redactBinaries(r.redactLayers(s, 0))
	if r.work.over() {
		return r.placeholderFor(withheld, s)
	}
	if len(s) >= longText && r.n == written && out == s {
		r.clear[s] = true
	}
	return out
}

// longText is the minimum length, in bytes, of texts without secrets that are remembered.
const longText = 32

// redactLayers replaces secrets in a text and in base64 texts within it.
func (r *Redactor) redactLayers(s string, depth int) string {
	if s = r.redactPlain(s); depth < maxDepth && !r.work.over() {
		s = r.redactBase64(s, depth)
	}
	return s
}

// redactPlain replaces secrets that are not encoded.
func (r *Redactor) redactPlain(s string) string {
	for _, k := range r.known {
		s = r.replace(s, k.find(s), k.values)
	}
	found := find(s, r.work)
	for _, h := range found {
		if r.aws = r.aws || h.kind == awsKey; h.learn && len(r.learned) < maxLearned {
			r.learned[s[h.from:h.to]] = h.kind
		}
	}
	var repeated []form // learned values, which the rest of the text may repeat
	var values []string
	for _, h := range found {
		if h.learn && len(repeated) < maxLearned {
			repeated = append(repeated, form{s[h.from:h.to], h.kind, len(values)})
			values = append(values, s[h.from:h.to])
		}
	}
	if s = r.replace(s, found, nil); len(repeated) > 0 {
		r.work.spend(len(s)/8 + len(repeated)*perName)
		// A Known is large, so it is built only for texts that need it.
		s = r.replace(s, (&Known{values: values, forms: repeated}).build().find(s), values)
	}
	if r.aws {
		found = awsSecretCandidates(s)
		for _, h := range found {
			r.learned[s[h.from:h.to]] = h.kind
		}
		s = r.replace(s, found, nil)
	}
	return s
}

// replace replaces spans by placeholders. If values is not nil, the spans are forms of
// these known values.
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
		out.WriteString(r.placeholderFor(h.kind, value))
		at = h.to
	}
	out.WriteString(s[at:])
	return out.String()
}

// placeholderFor returns the placeholder of a value, and counts it as written.
func (r *Redactor) placeholderFor(kind, value string) string {
	r.counts[kind]++
	r.n++
	key := kind + "\x00" + value
	if r.names[key] == "" {
		r.kinds[kind]++
		r.names[key] = fmt.Sprintf(marker+"%s:%d]", kind, r.kinds[kind])
	}
	return r.names[key]
}

// Take returns the number of placeholders written since the last call.
func (r *Redactor) Take() int32 {
	n := r.n
	r.n = 0
	return int32(n)
}

// Written returns the number of placeholders written since the last Take.
func (r *Redactor) Written() int { return r.n }

// Counts returns the number of placeholders written, by type.
func (r *Redactor) Counts() map[string]int { return maps.Clone(r.counts) }
