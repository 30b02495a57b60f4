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

func (l *liar) Walk(context.Context, *guestpb.WalkRequest) (*guestpb.WalkResponse, error) {
	return l.walk, nil
}
func (l *liar) Search(context.Context, *guestpb.SearchRequest) (*guestpb.SearchResponse, error) {
	return l.search, nil
}

func TestInvalidWalkAnswersAreRefused(t *testing.T) {
	for name, r := range map[string]*guestpb.WalkResponse{
		"out of the tree":     {Entries: []*guestpb.Entry{{Path: []byte("../x")}}},
		"more than counted":   {Entries: []*guestpb.Entry{{Path: []byte("x")}}},
		"absolute":            {Entries: []*guestpb.Entry{{Path: []byte("/etc")}}},
		"more than asked for": {Entries: make([]*guestpb.Entry, 3)},
	} {
		if _, err := connect(t, &liar{walk: r}).Walk(t.Context(), env.WalkSpec{MaxEntries: 2}); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := connect(t, &liar{walk: &guestpb.WalkResponse{Levels: []int64{1, -1}, Unreadable: -1, Entries: []*guestpb.Entry{{Path: []byte("a"), Kind: 999, Mode: 1 << 31, Size: -5}}}})
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
		"no number":       line(&guestpb.Line{}),
		"outside":         line(&guestpb.Line{Number: 1, File: []byte("a/../../b")}),
		"longer than all": line(&guestpb.Line{Number: 1, Text: []byte("abc"), Size: 2}),
		"negative cut":    line(&guestpb.Line{Number: 1, Cut: -1}),
		"more than all":   {Matches: 0, Lines: line(&guestpb.Line{Number: 1}).Lines},
		"more than asked": {Matches: 9, Lines: slices.Repeat(line(&guestpb.Line{Number: 1}).Lines, 3)},
	} {
		if _, err := connect(t, &liar{search: r}).Search(t.Context(), env.SearchSpec{MaxMatches: 2}); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	want := []string{".a", "01", "1", "1a", "2", "10", "A", "a", "a1", "a1b", "a2", "a2.txt", "a10.txt", "a010b", "a18446744073709551617", "b"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, natural)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func FuzzNaturalOrder(f *testing.F) {
	f.Add("a1", "a01", "a2")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		sign := func(n int) int { return min(max(n, -1), 1) }
		if sign(natural(a, b)) != -sign(natural(b, a)) || (natural(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q have no order", a, b)
		}
		if natural(a, b) <= 0 && natural(b, c) <= 0 && natural(a, c) > 0 {
			t.Fatalf("%q, %q, %q go in a circle", a, b, c)
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
