package leak

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// repo maps paths of a repository to texts.
type repo map[string]string

func (r repo) with(name, text string) repo {
	out := maps.Clone(r)
	out[name] = text
	return out
}

func (r repo) files(each func(name string, data []byte) error) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if err := each(name, []byte(r[name])); err != nil {
			return err
		}
	}
	return nil
}

// shelf is a repository with a bug in lookup. None of its files reveals the fix.
var shelf = repo{
	"shelf/__init__.py": "from .store import Store\nfrom .twin import Mirror\n",
	"shelf/store.py": `"""Keeps books."""
import bisect


class Store:
    def __init__(self, books=()):
        self.books = sorted(books)
        self.limit = 10

    def add(self, book):
        if len(self.books) >= self.limit:
            raise ValueError("the shelf is full")
        bisect.insort(self.books, book)

    def lookup(self, title, default=None):
        """Return the first book of that title."""
        position = bisect.bisect_right(self.books, title)
        if position < len(self.books):
            return self.books[position]
        return default

    def titles(self, start, count):
        chosen = self.books[start:start + count]
        return [book.title() for book in chosen]
`,
	"shelf/twin.py": `class Mirror:
    def titles(self, start, count):
        chosen = self.books[start:start + count]
        return [book.title() for book in chosen]

    def lookup_all(self, wanted):
        found = []
        for title in wanted:
            found.append(self.lookup(title))
        return found
`,
	"tests/test_store.py": "from shelf import Store\n\n\ndef test_lookup():\n    assert Store([\"a\"]).lookup(\"a\") == \"a\"\n\n\ndef test_titles():\n    assert Store([\"a\"]).titles(0, 1) == [\"A\"]\n",
	"README.md":           "# Shelf\n\nKeeps books in order.\n\n```python\nStore([\"a\"]).lookup(\"a\", default=None)\n```\n",
	"CHANGELOG.md":        "- lookup returns the first book of a title\n- fixed a bug in titles()\n",
	"data/blob.json":      `{"names": ["lookup", "titles"], "image": "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ="}`,
}

var fixedStore = strings.NewReplacer(
	"bisect.bisect_right(self.books, title)", "bisect.bisect_left(self.books, title)",
	"if position < len(self.books):", "if position < len(self.books) and self.books[position] == title:",
).Replace(shelf["shelf/store.py"])

func changesOf(path, base, fixed string) []Change {
	return []Change{{Path: path, Base: &base, Fixed: &fixed}}
}

func search(t testing.TB, base repo, fixed string) []Finding {
	t.Helper()
	found, err := Search(changesOf("shelf/store.py", shelf["shelf/store.py"], fixed), base.files)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCleanRepositoryHasNoFindings(t *testing.T) {
	if found := search(t, shelf, fixedStore); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// Files that unpack to more than the limits, or at many positions, are read only up to the limits, and other files
// are still searched.
func TestBombsAreBounded(t *testing.T) {
	bomb := strings.Repeat("\x00", 64<<20)
	for range 2 {
		bomb = gzipped(t, bomb)
	}
	nested := strings.Repeat("a", 1000)
	for range 2 * maxDepth {
		nested = packedAs(t, "zip", "x", nested)
	}
	total := 0
	for _, text := range []string{bomb, nested, strings.Repeat("x\x9c", 1<<20), strings.Repeat("BZh9", 1<<18), strings.Repeat("PK\x03\x04", 1<<18), strings.Repeat("[", 1<<20), strings.Repeat("0 ", 1<<20)} {
		n := 0
		unpack([]byte(text), func(_, text string) { n += len(text) })
		if n > maxPerFile+maxStream+len(text) {
			t.Errorf("%d bytes of %d", n, len(text))
		}
		total += n
	}
	found := search(t, shelf.with("a.gz", bomb).with("b.txt", fixPatch), fixedStore)
	if len(found) != 1 || found[0].Path != "b.txt" {
		t.Errorf("%v after %d bytes", found, total)
	}
}

// Search subtracts what the code in use contains from what the fix adds: only the rest is secret. It does not subtract
// what unused code contains.
func TestOnlyCodeInUseIsSubtracted(t *testing.T) {
	twin := shelf["shelf/twin.py"] + strings.ReplaceAll(fixedLookup, "lookup", "find")
	for name, c := range map[string]struct {
		path, text string
		found      bool
	}{
		"in use":                   {"shelf/twin.py", twin + "\n    def all(self):\n        return self.find(1)\n", false},
		"a method without calls":   {"shelf/twin.py", twin, true},
		"a module without imports": {"shelf/spare.py", twin + "\n    def all(self):\n        return self.find(1)\n", true},
	} {
		if found := search(t, shelf.with(c.path, c.text), fixedStore); len(found) > 0 != c.found {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// The expressions in f-strings are code in use.
func TestExpressionsInFormattedStringsAreCode(t *testing.T) {
	base := "def pairs(value, safe):\n    first = f\"{{x}}={quote(v, safe)}, {value!r:>{width(safe)}}\"\n    return \",\".join(quote(safe, v) for v in value)\n"
	for name, c := range map[string]struct {
		text  string
		found bool
	}{
		"as it is":           {base, false},
		"in an rf-string":    {strings.Replace(base, "f\"{{x}}", "rf\"{{x}}", 1), false},
		"in a plain string":  {strings.Replace(base, "f\"{{x}}", "\"{{x}}", 1), true},
		"between two braces": {strings.Replace(base, "={quote(v, safe)}", "={{quote(v, safe)}}", 1), true},
	} {
		found, err := Search(changesOf("shelf/pairs.py", c.text, strings.Replace(c.text, "quote(safe, v)", "quote(v, safe)", 1)), repo{"shelf/pairs.py": c.text}.files)
		if err != nil || len(found) > 0 != c.found {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	if got, inString := code(base); got != base || inString[strings.Index(base, "quote")] || !inString[strings.Index(base, "{{x}}")] {
		t.Errorf("%q", got)
	}
	if got, _ := code("x = f\"\"\"a {run(1)} b\"\"\"\n"); !strings.Contains(got, "run(1)") || strings.Contains(got, "b") {
		t.Errorf("%q", got)
	}
}

// A copy of a short function with renamed identifiers is a finding only if it calls a builtin. Without one, short
// functions are often equal by chance, even if they contain a keyword.
func TestShortRenamedFunctionsNeedABuiltin(t *testing.T) {
	for name, c := range map[string]struct {
		base, fixed, copied string
		found               bool
	}{
		"a builtin":                  {"list(shelf.books)", "sorted(shelf.books)", "sorted(a.items)", true},
		"a builtin of three letters": {"max(shelf.books)", "min(shelf.books)", "min(a.items)", true},
		"another builtin":            {"list(shelf.books)", "sorted(shelf.books)", "tuple(a.items)", false},
		"a builtin with a capital":   {"ValueError(shelf.books)", "KeyError(shelf.books)", "KeyError(a.items)", true},
		"a keyword of three letters": {"shelf.open.now", "not shelf.open.now", "not a.items.last", false},
	} {
		base, fixed := "def names(shelf):\n    return "+c.base+"\n", "def names(shelf):\n    return "+c.fixed+"\n"
		files := repo{"shelf/names.py": base, "scratch.py": "def f(a):\n    return " + c.copied + "\n"}
		found, err := Search(changesOf("shelf/names.py", base, fixed), files.files)
		if err != nil || len(found) > 0 != c.found {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
}
