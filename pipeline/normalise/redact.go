package normalise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// redactor replaces secrets by [REDACTED:type:n], n counting the different
// values of a type in the order they were met: the same secret is the same
// placeholder all through an episode. A value that was told by the name it was
// assigned to is learned: where it stands without its name, a redactor that has
// learned it finds it too. One goroutine uses it.
type redactor struct {
	known   []knownSecret // longest first
	learned map[string]string
	aws     bool // there is an AWS key: look for its secret half
	names   map[string]string
	counts  map[string]int // placeholders written, by type
	kinds   map[string]int // different values, by type
	n       int            // placeholders written since the last take
}

// knownSecret is an exact value to look for.
type knownSecret struct{ value, kind string }

func newRedactor(known []string) *redactor {
	r := &redactor{learned: map[string]string{}, names: map[string]string{}, counts: map[string]int{}, kinds: map[string]int{}}
	for _, k := range known {
		if len(k) >= 8 { // shorter values would tear ordinary words apart
			r.known = append(r.known, knownSecret{k, "known"})
		}
	}
	r.sort()
	return r
}

func (r *redactor) sort() {
	slices.SortFunc(r.known, func(a, b knownSecret) int {
		if len(a.value) != len(b.value) {
			return len(b.value) - len(a.value)
		}
		return strings.Compare(a.value, b.value)
	})
}

// wiser is a fresh redactor that knows from the start what this one has
// learned; nil if that is nothing.
func (r *redactor) wiser(known []string) *redactor {
	if len(r.learned) == 0 && !r.aws {
		return nil
	}
	w := newRedactor(known)
	for _, value := range slices.Sorted(maps.Keys(r.learned)) {
		w.known = append(w.known, knownSecret{value, r.learned[value]})
	}
	w.aws = r.aws
	w.sort()
	return w
}

func (r *redactor) text(s string) string {
	for _, k := range r.known {
		if n := strings.Count(s, k.value); n > 0 {
			place := r.place(k.kind, k.value)
			r.counts[k.kind] += n - 1
			r.n += n - 1
			s = strings.ReplaceAll(s, k.value, place)
		}
	}
	s = r.marked(s)
	if strings.Contains(s, "PRIVATE KEY") {
		s = pemRest.ReplaceAllStringFunc(s, func(rest string) string { return r.place(privateKey, rest) })
	}
	if r.aws {
		s = awsSecret.ReplaceAllStringFunc(s, func(run string) string {
			if len(run) != 40 || !mixed(run) || !random(run) {
				return run
			}
			r.learned[run] = "aws_secret"
			return r.place("aws_secret", run)
		})
	}
	return s
}

// marked replaces the secrets that are known by how they begin or by the name
// before them.
func (r *redactor) marked(s string) string {
	var out strings.Builder
	at := 0
	for i := 0; i+1 < len(s); i++ {
		if !candidates[int(s[i])<<8|int(s[i+1])] {
			continue
		}
		kind, from, to := find(s, i)
		if kind == "" {
			continue
		}
		switch kind {
		case "assigned":
			r.learned[s[from:to]] = kind
		case awsKey:
			r.aws = true
		}
		out.WriteString(s[at:from])
		out.WriteString(r.place(kind, s[from:to]))
		at, i = to, to-1
	}
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

func (r *redactor) place(kind, value string) string {
	r.counts[kind]++
	r.n++
	key := kind + "\x00" + value
	if r.names[key] == "" {
		r.kinds[kind]++
		r.names[key] = fmt.Sprintf("[REDACTED:%s:%d]", kind, r.kinds[kind])
	}
	return r.names[key]
}

// take returns how many placeholders were written since the last call.
func (r *redactor) take() int32 {
	n := r.n
	r.n = 0
	return int32(n)
}
