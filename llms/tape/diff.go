package tape

import (
	"errors"
	"slices"
)

// maxRecent is the number of requests with which the next request is compared. It is more than
// one because the conversations of an episode may alternate.
const maxRecent = 4

// recent holds the last distinct requests and the numbers of their records.
type recent []struct {
	record int
	bytes  []byte
}

// diff finds the request that has the most in common with body. base is the number of its
// record, or -1 if there is none; part is the new part of body.
func (r recent) diff(body []byte) (base, prefix, suffix int, part []byte) {
	base, part = -1, body
	for _, old := range r {
		p := commonPrefix(old.bytes, body)
		s := commonSuffix(old.bytes[p:], body[p:])
		if p+s > prefix+suffix {
			base, prefix, suffix, part = old.record, p, s, body[p:len(body)-s]
		}
	}
	return base, prefix, suffix, part
}

// join is the inverse of diff: it returns the request that h and part describe.
func (r recent) join(h recordHeader, part []byte) ([]byte, error) {
	if h.Base < 0 {
		return part, nil
	}
	for _, old := range r {
		if old.record != h.Base {
			continue
		}
		if h.Prefix < 0 || h.Suffix < 0 || h.Prefix > len(old.bytes) || h.Suffix > len(old.bytes)-h.Prefix || len(part) > maxBody-len(old.bytes) {
			break
		}
		return slices.Concat(old.bytes[:h.Prefix], part, old.bytes[len(old.bytes)-h.Suffix:]), nil
	}
	return nil, errors.New("it does not match the records before it")
}

// add adds a request unless it is already there.
func (r *recent) add(record int, body []byte) {
	for _, old := range *r {
		if string(old.bytes) == string(body) {
			return
		}
	}
	*r = append(*r, struct {
		record int
		bytes  []byte
	}{record, body})
	if len(*r) > maxRecent {
		*r = slices.Delete(*r, 0, 1)
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}
