package metrics

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"unicode"

	"github.com/tracesmith/tracesmith/schemas"
)

// MinHash dimensions: what is shingled are words, five in a row.
const (
	minhashes  = 128
	shingle    = 5
	hashedText = 1 << 20 // bytes of an episode that are looked at
)

// spokenWords are the runs of letters, digits and underscores.
func spokenWords(text []byte) [][]byte {
	return bytes.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// multipliers are odd and fixed: signatures of all versions can be compared.
var multipliers = func() (m [minhashes]uint64) {
	state := uint64(0x9e3779b97f4a7c15)
	for i := range m { // splitmix64
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		m[i] = z ^ z>>31 | 1
	}
	return m
}()

// MinHash is the signature of what an episode's agent says and calls: 128 minima
// of 32 bits, little endian, in base64. The share of equal ones of two
// signatures estimates the Jaccard similarity of their sets of 5-word shingles.
// It is "" where fewer than five words are said.
func MinHash(rows []schemas.StepRow) string {
	var text []byte
	for _, r := range rows {
		if r.Source != "agent" {
			continue
		}
		for _, part := range []*string{&r.Message, r.ToolName, r.ArgumentsJSON} {
			if part != nil {
				text = append(append(text, *part...), '\n')
			}
		}
	}
	text = text[:min(len(text), hashedText)]
	words := spokenWords(text)
	if len(words) < shingle {
		return ""
	}
	var least [minhashes]uint32
	for i := range least {
		least[i] = math.MaxUint32
	}
	for i := range len(words) - shingle + 1 {
		h := fnv.New64a()
		for _, w := range words[i : i+shingle] {
			_, _ = h.Write(w)
			_, _ = h.Write([]byte{0})
		}
		sum := h.Sum64()
		for j := range least {
			if v := uint32((sum * multipliers[j]) >> 32); v < least[j] {
				least[j] = v
			}
		}
	}
	var out [4 * minhashes]byte
	for i, v := range least {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	return base64.StdEncoding.EncodeToString(out[:])
}

// Similar estimates the similarity of two episodes by their signatures, 0 to 1;
// false for what is no signature.
func Similar(a, b string) (float64, bool) {
	x, errX := base64.StdEncoding.DecodeString(a)
	y, errY := base64.StdEncoding.DecodeString(b)
	if errX != nil || errY != nil || len(x) != 4*minhashes || len(y) != 4*minhashes {
		return 0, false
	}
	same := 0
	for i := 0; i < len(x); i += 4 {
		if binary.LittleEndian.Uint32(x[i:]) == binary.LittleEndian.Uint32(y[i:]) {
			same++
		}
	}
	return float64(same) / minhashes, true
}
