package overlap

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// jsonHashes is TextHashes in JSON. Grams are 64-bit big-endian numbers in base64; Shingles is the
// number of the shorter runs of words that Signature covers.
type jsonHashes struct {
	Grams     string `json:"grams"`
	Shingles  int    `json:"shingles"`
	Signature string `json:"minhash,omitempty"`
}

// MarshalJSON encodes hashes. Equal hashes have equal encodings.
func (p TextHashes) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 8*len(p.Grams))
	for _, g := range p.Grams {
		raw = binary.BigEndian.AppendUint64(raw, g)
	}
	w := jsonHashes{Grams: base64.StdEncoding.EncodeToString(raw), Shingles: p.Shingles}
	if p.Shingles > 0 {
		w.Signature = p.Signature.String()
	}
	return json.Marshal(w)
}

// UnmarshalJSON accepts only output of MarshalJSON.
func (p *TextHashes) UnmarshalJSON(text []byte) error {
	var w jsonHashes
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected text after the hashes of a text")
	}
	*p = TextHashes{Shingles: w.Shingles}
	raw, err := base64.StdEncoding.DecodeString(w.Grams)
	if err != nil || len(raw)%8 != 0 {
		return errors.New("grams are not hashes in base64")
	}
	for ; len(raw) > 0; raw = raw[8:] {
		p.Grams = append(p.Grams, binary.BigEndian.Uint64(raw))
	}
	if !slices.IsSorted(p.Grams) || len(slices.Compact(slices.Clone(p.Grams))) != len(p.Grams) {
		return errors.New("grams are not sorted or contain duplicates")
	}
	if p.Shingles < 0 || p.Shingles > MaxText {
		return errors.New("the number of shingles is out of range")
	}
	if len(p.Grams) > p.Shingles { // a gram has more words than a shingle
		return errors.New("a text cannot have more grams than shingles")
	}
	known := false
	if p.Signature, known = ParseSignature(w.Signature); known != (p.Shingles > 0) || !known && w.Signature != "" {
		return errors.New("minhash is not a valid signature, or does not fit the number of shingles")
	}
	return nil
}
