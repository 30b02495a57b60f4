package tokens

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// checkAgainstLibrary checks that splitting a text into words and encoding each gives the tokens that the
// library gives for the whole text, and that the count is the same with and without cached words.
func checkAgainstLibrary(t *testing.T, text string) {
	t.Helper()
	for _, name := range Vocabularies() {
		c := vocabularies[name]()
		want, _, err := c.codec.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint
		for rest := text; rest != ""; {
			n := c.split(rest)
			if n <= 0 || n > len(rest) {
				t.Fatalf("%s: the first word of %q has %d bytes", name, rest, n)
			}
			ids, _, err := c.codec.Encode(rest[:n])
			if err != nil {
				t.Fatal(err)
			}
			got, rest = append(got, ids...), rest[n:]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %q has tokens %v, the library gives %v", name, text, got, want)
		}
		for range 2 {
			if n := c.count(text); n != len(want) {
				t.Fatalf("%s: %q has %d tokens, the library counts %d", name, text, n, len(want))
			}
		}
	}
}

// samples are texts that are hard to split.
var samples = []string{
	"def parse(self, HTTPResponse):\n\treturn self._items[0x1F] != None  # don't\r\n\r\n",
	"Traceback (most recent call last):\n  File \"/w/src/app.py\", line 1234, in <module>\nZeroDivisionError: division by zero\n",
	"(Pdb) p total / len(prices)\n*** ZeroDivisionError\n-> return a//b\n",
	"I'LL you'Ve WE'RE he'd it'S I'm can't 'tis '' ''s 's'S'lL'vx'r'l o'ſ x'ſy 'ſ \u212a'\u212a",
	"お誕生日おめでとう。汉字处理 ʰˢⓐ Ǆǅǆ ªº한국어 עברית العَرَبِيَّة हिन्दी ไทย",
	"👩‍👩‍👧‍👦 🇨🇭 👍🏽 ✊ e\u0301E\u0301\u0301 \u0301 \u0301A \u0301's !\u0301!!\u0301x \u0301\u0301B",
	"a  b   c\t\td \u00a0 e\u00a0f\u2003\u2003g \u3000h\u2028\u2029i\u0085\u0085j\u200b\u200bk \ufeffl\v\f m",
	"\n \n\n  \n \t\n\r\n \r\r x \n", "   ", " ", "  \n", "\u00a0\n\u00a0\n\u00a0y", "z\n\n",
	"!!!\n\n//\n/ ./a/b.c ://\r\n/\n; --- ===\n+++ {}[]()<>/**/\n",
	"1234567890 ٣٤٥٦ ½⅓ ⅷ １２３４ 3.14e-10 v2x 1'000'000",
	"\xff\xfe\x80 a\xe6\xb1 b\xf0\x9f\x91 \xed\xa0\x80 \xc3( \xc0\xaf\xffs \xff\nX\xffy\xff", "\x00\x01\x7f \x7f\x7fa\x7f'\x7fs \x7f\n\x7f/\x1b[31m",
	"<|endoftext|><|fim_prefix|>", "ABCdefGHIjklMNO aBcDeF XMLHttpRequest ÀÉÎõü ẞß İı ΑΒΓαβγ АБВабв",
	strings.Repeat("a", 300), strings.Repeat("A", 120), strings.Repeat("汉", 90), strings.Repeat("=", 200), strings.Repeat("\n ", 90), strings.Repeat(" ", 200),
	"QUFBQUFBR0NDRkZGPT09L2FiYysxMjM0NTY3ODkwYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo",
}

func TestCountAgreesWithTheLibrary(t *testing.T) {
	for _, s := range samples {
		checkAgainstLibrary(t, s)
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no source files: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		checkAgainstLibrary(t, string(b))
	}
}

// Parts of samples in random order, because splitting depends on neighboring characters.
func TestShuffledTextAgreesWithTheLibrary(t *testing.T) {
	var parts []string
	for _, s := range samples {
		for _, r := range s {
			parts = append(parts, string(r))
		}
		parts = append(parts, s[:len(s)/2], "\xe6\xb1", "'s", "'LL", " ", "\n", "\r\n")
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		checkAgainstLibrary(t, b.String())
	}
}

// Characters on both sides of each boundary of a character class, in all positions of a word.
func TestEveryClassAgreesWithTheLibrary(t *testing.T) {
	a := newCharClasses()
	var b strings.Builder
	for c := range rune(unicode.MaxRune) {
		if c > 0x100 && a[c] == a[c+1] && a[c] == a[c-1] {
			continue
		}
		fmt.Fprintf(&b, "a%[1]cB'%[1]c %[1]cb%[1]c%[1]c.", c)
		if b.Len() > maxPiece {
			checkAgainstLibrary(t, b.String())
			b.Reset()
		}
	}
	checkAgainstLibrary(t, b.String())
}

// Several goroutines add more words than the cache can hold. Some are evicted, but no word gets
// the count of another.
func TestWordCacheEvictsButNeverConfuses(t *testing.T) {
	w := newWordCache()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 40_000 {
				n := g*20_000 + i
				word := fmt.Sprint(n)
				hash := w.hash(word+" and more"[:i%9], len(word))
				w.put(hash, n%1000)
				if got, ok := w.get(w.hash(word, len(word))); ok && got != n%1000 {
					t.Errorf("%s: %d", word, got)
				}
			}
		})
	}
	all.Wait()
	long, last := w.hash("long", 4), w.hash("new", 3)
	w.put(long, 1<<rowBits)
	if n, ok := w.get(long); ok {
		t.Errorf("a count that is too large was stored as %d", n)
	}
	w.put(last, 3)
	if n, ok := w.get(last); n != 3 || !ok {
		t.Errorf("the word that was added last is missing: %d", n)
	}
}

func FuzzCountAgreesWithTheLibrary(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkAgainstLibrary(t, text[:min(len(text), maxPiece)]) })
}

// BenchmarkText counts the sources of this package, with a new prefix each time.
func BenchmarkText(b *testing.B) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		text.Write(source)
	}
	c := vocabularies[Default]()
	b.SetBytes(int64(text.Len()))
	for i := 0; b.Loop(); i++ {
		c.Text(fmt.Sprint(i, text.String()))
	}
}
