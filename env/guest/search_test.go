package guest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

func (l *fakeGuest) Walk(context.Context, *guestpb.WalkRequest) (*guestpb.WalkResponse, error) {
	return l.walk, nil
}
func (l *fakeGuest) Search(context.Context, *guestpb.SearchRequest) (*guestpb.SearchResponse, error) {
	return l.search, nil
}

func TestInvalidWalkAnswersAreRefused(t *testing.T) {
	for name, r := range map[string]*guestpb.WalkResponse{
		"outside the tree":    {Entries: []*guestpb.Entry{{Path: []byte("../x")}}},
		"more than counted":   {Entries: []*guestpb.Entry{{Path: []byte("x")}}},
		"absolute":            {Entries: []*guestpb.Entry{{Path: []byte("/etc")}}},
		"more than requested": {Entries: make([]*guestpb.Entry, 3)},
	} {
		if _, err := connect(t, &fakeGuest{walk: r}).Walk(t.Context(), env.WalkSpec{MaxEntries: 2}); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := connect(t, &fakeGuest{walk: &guestpb.WalkResponse{Levels: []int64{1, -1}, Unreadable: -1, Entries: []*guestpb.Entry{{Path: []byte("a"), Kind: 999, Mode: 1 << 31, Size: -5}}}})
	if r, err := c.Walk(t.Context(), env.WalkSpec{}); err != nil || r.Total() != 1 || r.Unreadable != 0 || r.Entries[0] != (env.WalkEntry{Path: "a", Kind: '?'}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInvalidSearchAnswersAreRefused(t *testing.T) {
	line := func(l *guestpb.Line) *guestpb.SearchResponse {
		l.Match = true
		return &guestpb.SearchResponse{Matches: 5, Lines: []*guestpb.Line{l}}
	}
	for name, r := range map[string]*guestpb.SearchResponse{
		"no number":             line(&guestpb.Line{}),
		"outside":               line(&guestpb.Line{Number: 1, File: []byte("a/../../b")}),
		"text longer than line": line(&guestpb.Line{Number: 1, Text: []byte("abc"), Size: 2}),
		"negative cut":          line(&guestpb.Line{Number: 1, Cut: -1}),
		"more than counted":     {Matches: 0, Lines: line(&guestpb.Line{Number: 1}).Lines},
		"more than requested":   {Matches: 9, Lines: slices.Repeat(line(&guestpb.Line{Number: 1}).Lines, 3)},
	} {
		if _, err := connect(t, &fakeGuest{search: r}).Search(t.Context(), env.SearchSpec{MaxMatches: 2}); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	want := []string{".a", "01", "1", "1a", "2", "10", "A", "a", "a1", "a1b", "a2", "a2.txt", "a10.txt", "a010b", "a18446744073709551617", "b"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, compareNatural)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func FuzzNaturalOrder(f *testing.F) {
	f.Add("a1", "a01", "a2")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		sign := func(n int) int { return min(max(n, -1), 1) }
		if sign(compareNatural(a, b)) != -sign(compareNatural(b, a)) || (compareNatural(a, b) == 0) != (a == b) {
			t.Fatalf("the order of %q and %q is not antisymmetric", a, b)
		}
		if compareNatural(a, b) <= 0 && compareNatural(b, c) <= 0 && compareNatural(a, c) > 0 {
			t.Fatalf("the order of %q, %q, %q is not transitive", a, b, c)
		}
	})
}

// FuzzSearch checks that a search stays within its limits for any pattern, glob and file.
func FuzzSearch(f *testing.F) {
	f.Add("a(b|c)*$", "**/{a,b}*.[a-z]", "abc\nabd\r\n\xff", "d/a.c", 1, false)
	f.Add("", "[", "", "x", 0, true)
	f.Fuzz(func(t *testing.T, pattern, glob, text, name string, around int, literal bool) {
		root := t.TempDir()
		name = strings.ReplaceAll(name, "\x00", "")
		if !filepath.IsLocal(name) || len(name) > 200 || os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755) != nil ||
			os.WriteFile(filepath.Join(root, name), []byte(text), 0o644) != nil {
			return
		}
		r, err := search(root, &guestpb.SearchRequest{
			Pattern: []byte(pattern), Include: [][]byte{[]byte(glob)}, Literal: literal, IgnoreCase: len(pattern)%2 == 0,
			Context: int64(around & 3), MaxMatches: 5, MaxBytes: 1000, MaxLine: 20, TimeoutNs: int64(time.Second),
		})
		if err != nil {
			return
		}
		matches := 0
		for i, l := range r.Lines {
			if l.Match {
				matches++
			}
			if len(l.Text) > 20 || l.Cut+int64(len(l.Text)) > l.Size || i > 0 && l.Number <= r.Lines[i-1].Number {
				t.Fatalf("line %+v", l)
			}
		}
		if matches > 5 || int64(matches) > r.Matches || r.Files > 1 {
			t.Fatalf("%d matching lines of %+v", matches, r)
		}
	})
}
