package leak

import "testing"

// FuzzUnpack checks that decoders stop and keep to their limits for any data.
func FuzzUnpack(f *testing.F) {
	for _, text := range encodings(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		unpack(data, func(_, text string) { total += len(text) })
		if limit := maxPerFile + maxStream + len(data); total > limit {
			t.Errorf("%d bytes unpacked from %d, want at most %d", total, len(data), limit)
		}
		s, err := New(changesOf("shelf/store.py", shelf["shelf/store.py"], fixedStore), shelf.with("x.py", string(data)).files)
		if err != nil {
			t.Fatal(err)
		}
		s.File("x.py", data)
	})
}
