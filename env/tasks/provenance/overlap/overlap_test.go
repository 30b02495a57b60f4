package overlap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The definition of a word must not change, because signatures of different versions are compared.
func TestWordsMatchTheirPattern(t *testing.T) {
	text := []byte("def f_1(x2): return 'don't' # 汉字 e\u0301 ½ ⅷ ٣ ʰ _ __ -- \u200b\u00a0\xff\xe6\xb1z\x00É\n👍🏽a.b,c\tª")
	want := regexp.MustCompile(`[\pL\pN_]+`).FindAll(text, -1)
	if got := Words(text); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}

// numberedWords returns n different words, starting with the given number.
func numberedWords(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Word%d, ", first+i)
	}
	return b.String()
}

func sealedIndex(texts map[string]string) *Index {
	var x Index
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		x.Add(name, TextHashesOf(texts[name]))
	}
	x.Seal()
	return &x
}

func TestSimilarTextsAreFound(t *testing.T) {
	template := " Before you report a problem please make sure that you have read all of the following questions and answers with great care "
	x := sealedIndex(map[string]string{
		"one": numberedWords(0, 100), "two": numberedWords(1000, 60) + template, "three": numberedWords(2000, 60) + template, "four": numberedWords(3000, 60) + template, "short": numberedWords(4000, 15),
	})
	if grams, near := x.Texts(); grams != 4 || near != 5 {
		t.Errorf("%d and %d texts can be found, want 4 and 5", grams, near)
	}
	for name, c := range map[string]struct {
		text   string
		of     string
		share  float64
		nearly string // the match by signature, if its share is at least NearShare
	}{
		"the same":                  {numberedWords(0, 100), "one", 1, "one"},
		"in other case and marks":   {strings.ToUpper(strings.ReplaceAll(numberedWords(0, 100), ", ", "\n")), "one", 1, "one"},
		"within a longer one":       {numberedWords(9000, 400) + numberedWords(0, 100) + numberedWords(9500, 300), "one", 1, ""},
		"a part of it":              {numberedWords(20, 40), "one", 1, ""},
		"half of it and more":       {numberedWords(0, 56) + numberedWords(9000, 44), "one", 0.5, ""},
		"less than half of it":      {numberedWords(0, 50) + numberedWords(9000, 50), "one", 0.4318, ""},
		"a word of thirteen":        {strings.NewReplacer("Word10,", "x,", "Word40,", "x,", "Word70,", "x,").Replace(numberedWords(0, 100)), "one", 0.5795, "one"},
		"too short to be compared":  {numberedWords(0, 19), "", 0, ""},
		"a short one that is known": {numberedWords(4000, 15), "", 0, "short"},
		"the template and more":     {template + numberedWords(9000, 20), "", 0, ""},
		"the template alone":        {template, "", 0, ""},
		"nothing":                   {"", "", 0, ""},
		"another text":              {numberedWords(7000, 100), "", 0, ""},
	} {
		grams, near := x.Find(TextHashesOf(c.text))
		if grams.Name != c.of || math.Abs(grams.Share-c.share) > 0.0001 {
			t.Errorf("%s: %+v, want %.4f of %q", name, grams, c.share, c.of)
		}
		if near.Share < NearShare {
			near.Name = ""
		}
		if near.Name != c.nearly {
			t.Errorf("%s: nearly %+v, want %q", name, near, c.nearly)
		}
	}
}

func TestChangedLeavesOutContext(t *testing.T) {
	patch := "diff --git a/pkg/calc.py b/pkg/calc.py\n--- a/pkg/calc.py\n+++ b/pkg/calc.py\n@@ -1,3 +1,3 @@ def total\n around\n--- minus\n+++ plus\n around\n"
	if got, want := Changed(patch), "pkg/calc.py\n-- minus\n++ plus\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, none := range []string{"", "no patch", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"} {
		if got := Changed(none); got != "" {
			t.Errorf("%q of %q", got, none)
		}
	}
}

func TestTextHashesSurviveARoundTrip(t *testing.T) {
	for _, text := range []string{"", "one two three four", numberedWords(0, 7), numberedWords(0, 300)} {
		p := TextHashesOf(text)
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q TextHashes
		if err := json.Unmarshal(raw, &q); err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%s came back as %+v, %v", raw, q, err)
		}
		if strings.Contains(strings.ToLower(string(raw)), "word1") {
			t.Errorf("the encoding contains words: %s", raw)
		}
	}
	sign := TextHashesOf(numberedWords(0, 30)).Signature.String()
	for name, text := range map[string]string{
		"grams":     `{"grams":"AAA=","shingles":9,"minhash":"` + sign + `"}`,
		"order":     `{"grams":"AAAAAAAAAAIAAAAAAAAAAQ==","shingles":9,"minhash":"` + sign + `"}`,
		"twice":     `{"grams":"AAAAAAAAAAEAAAAAAAAAAQ==","shingles":9,"minhash":"` + sign + `"}`,
		"more":      `{"grams":"AAAAAAAAAAEAAAAAAAAAAg==","shingles":1,"minhash":"` + sign + `"}`,
		"negative":  `{"grams":"","shingles":-1}`,
		"unsigned":  `{"grams":"","shingles":4}`,
		"signature": `{"grams":"","shingles":0,"minhash":"AAAA"}`,
		"unknown":   `{"grams":"","shingles":0,"text":"x"}`,
		"no object": `7`,
	} {
		if err := json.Unmarshal([]byte(text), new(TextHashes)); err == nil {
			t.Errorf("%s: %s was accepted", name, text)
		}
	}
}

func FuzzPatches(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("@@ -1,0 +1 @@")
	f.Fuzz(func(t *testing.T, patch string) {
		p := TextHashesOf(Changed(patch))
		if q := TextHashesOf(patch); len(p.Grams) > p.Shingles || len(q.Grams) > q.Shingles {
			t.Errorf("%d runs of %d words, %d of %d", len(p.Grams), Gram, p.Shingles, Shingle)
		}
	})
}
