package overlap

import (
	"encoding/base64"
	"encoding/binary"
	"math"
)

// Shingle is the length of a shingle: a Signature covers all runs of this many consecutive words.
const Shingle = 5

// minima is the number of values in a signature.
const minima = 128

// Signature is a MinHash of a text's runs of Shingle words.
type Signature [minima]uint32

// multipliers are odd numbers. They must not change, because signatures of different versions are compared.
var multipliers = func() (m [minima]uint64) {
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

// FNV-1a of 64 bits (draft-eastlake-fnv).
const (
	offset = 0xcbf29ce484222325
	prime  = 0x100000001b3
)

// SignatureOf returns the signature of a text with the given words. known is false if there are fewer than Shingle
// words.
func SignatureOf(words [][]byte) (s Signature, known bool) {
	if len(words) < Shingle {
		return s, false
	}
	sums := make([]uint64, 0, len(words)-Shingle+1)
	for i := range cap(sums) {
		sum := uint64(offset)
		for _, w := range words[i : i+Shingle] {
			for _, c := range w {
				sum = (sum ^ uint64(c)) * prime
			}
			sum *= prime // a zero byte
		}
		sums = append(sums, sum)
	}
	// The upper half of the smallest product is the smallest upper half, so only the result is shifted. Each iteration
	// computes four minima, because the processor can do independent multiplications at the same time.
	for j := 0; j < minima; j += 4 {
		m0, m1, m2, m3 := multipliers[j], multipliers[j+1], multipliers[j+2], multipliers[j+3]
		v0, v1, v2, v3 := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64)
		for _, sum := range sums {
			v0, v1, v2, v3 = min(v0, sum*m0), min(v1, sum*m1), min(v2, sum*m2), min(v3, sum*m3)
		}
		s[j], s[j+1], s[j+2], s[j+3] = uint32(v0>>32), uint32(v1>>32), uint32(v2>>32), uint32(v3>>32)
	}
	return s, true
}

// String returns the values of the signature as 32-bit little-endian numbers in base64.
func (s Signature) String() string {
	var out [4 * minima]byte
	for i, v := range s {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	return base64.StdEncoding.EncodeToString(out[:])
}

// ParseSignature parses the result of String. ok is false for any other text.
func ParseSignature(text string) (s Signature, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 4*minima {
		return s, false
	}
	for i := range s {
		s[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return s, true
}

// Similar returns the share of minima that two signatures have in common, from 0 to 1. It is an estimate of the Jaccard
// similarity of the two sets of runs.
func (s Signature) Similar(o Signature) float64 {
	same := 0
	for i, v := range s {
		if v == o[i] {
			same++
		}
	}
	return float64(same) / minima
}
