package overlap

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Gram is the length of a gram: each hash in TextHashes.Grams covers this many consecutive words.
const Gram = 13

// TextHashes identifies a text without containing it.
type TextHashes struct {
	Grams     []uint64  // hashes of the text's runs of Gram words, sorted, without duplicates
	Shingles  int       // number of the text's runs of Shingle words
	Signature Signature // of the runs of Shingle words; zero if there are none
}

// TextHashesOf returns the hashes of a text. It ignores case.
func TextHashesOf(text string) TextHashes {
	words := Words([]byte(strings.ToLower(text[:min(len(text), MaxText)])))
	p := TextHashes{Grams: hashGrams(words), Shingles: max(0, len(words)-Shingle+1)}
	p.Signature, _ = SignatureOf(words)
	return p
}

// hashGrams returns the hashes of the runs of Gram words. Each hash is the first 8 bytes, big endian, of the SHA-256 of
// the words with one space between them.
func hashGrams(words [][]byte) []uint64 {
	if len(words) < Gram {
		return nil
	}
	text := bytes.Join(words, []byte(" "))
	out := make([]uint64, 0, len(words)-Gram+1)
	from, to := 0, -1
	for i, w := range words {
		to += len(w) + 1
		if i < Gram-1 {
			continue
		}
		sum := sha256.Sum256(text[from:to])
		out = append(out, binary.BigEndian.Uint64(sum[:]))
		from += len(words[i-Gram+1]) + 1
	}
	slices.Sort(out)
	return slices.Compact(out)
}
