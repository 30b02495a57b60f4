package leak

import "testing"

// FuzzUnpack gives decoders any data: they end, and what they give is bounded.
func FuzzUnpack(f *testing.F) {
	for _, text := range encodings(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		unpack(data, func(_, text string) { total += len(text) })
		if most := maxPerFile + maxStream + len(data); total > most {
			t.Errorf("%d bytes of %d", total, len(data))
		}
		s, err := New(changesOf("shelf/store.py", shelf["shelf/store.py"], fixedStore), shelf.with("x.py", string(data)).files)
		if err != nil {
			t.Fatal(err)
		}
		s.File("x.py", data)
	})
}
