package leak

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// repo is a repository by path and text.
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

// shelf is a healthy repository whose bug is in lookup.
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

func TestHealthyRepositoryHasNoFindings(t *testing.T) {
	if found := search(t, shelf, fixedStore); len(found) > 0 {
		t.Errorf("%v", found)
	}
}
