// Package sinktest holds code shared by the tests of sinks: the conformance suite for
// stores, S3 servers on the loopback interface, and an episode whose content is difficult for
// readers.
package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// RunStore runs the conformance suite of sinks.Store. open must return a new, empty store
// at each call.
func RunStore(t *testing.T, open func(t *testing.T) sinks.Store) {
	for name, check := range map[string]func(*testing.T, sinks.Store){
		"RoundTrip": roundTrip, "CreateOnly": createOnly, "Race": race, "Files": files, "Copy": copied, "Swap": swap, "SwapRace": swapRace,
		"List": list, "Missing": missing, "Delete": remove, "Keys": keys, "Probe": probeHolds, "Cancelled": cancelled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func roundTrip(t *testing.T, s sinks.Store) {
	for key, body := range map[string]string{
		"a": "x", "deep/er/key.json.zst": "\x00\xff", "odd/ünï code+=&?#%41 .txt": "odd", "empty": "",
	} {
		must(t, s.Create(t.Context(), key, []byte(body)))
		got, err := s.Get(t.Context(), key)
		must(t, err)
		if string(got) != body {
			t.Errorf("%s: got %q, want %q", key, got, body)
		}
		head, err := s.Head(t.Context(), key)
		must(t, err)
		want := sinks.Object{Key: key, Size: int64(len(body)), SHA256: schemas.HashBytes([]byte(body))}
		if diff := cmp.Diff(want, head); diff != "" {
			t.Errorf("%s: head: %s", key, diff)
		}
	}
}

func createOnly(t *testing.T, s sinks.Store) {
	must(t, s.Create(t.Context(), "k", []byte("one")))
	for _, body := range []string{"two", "one"} {
		if err := s.Create(t.Context(), "k", []byte(body)); !errors.Is(err, sinks.ErrExists) {
			t.Errorf("second create: %v, want ErrExists", err)
		}
	}
	wantBody(t, s, "k", "one")
}

// race lets eight writers create one key with different bodies.
func race(t *testing.T, s sinks.Store) {
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = s.Create(t.Context(), key, bytes.Repeat([]byte{byte('a' + i)}, 1000)) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Errorf("round %d: both %d and %d won", round, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, sinks.ErrExists):
				t.Errorf("round %d: loser %d got %v, want ErrExists", round, i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no writer won: %v", round, errs)
		}
		wantBody(t, s, key, strings.Repeat(string(rune('a'+winner)), 1000))
	}
}

func files(t *testing.T, s sinks.Store) {
	path := filepath.Join(t.TempDir(), "src")
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	must(t, os.WriteFile(path, body, 0o600))
	must(t, s.CreateFile(t.Context(), "data/f.parquet", path))
	if err := s.CreateFile(t.Context(), "data/f.parquet", path); !errors.Is(err, sinks.ErrExists) {
		t.Errorf("second create: %v, want ErrExists", err)
	}
	head, err := s.Head(t.Context(), "data/f.parquet")
	must(t, err)
	if head.Size != int64(len(body)) || head.SHA256 != schemas.HashBytes(body) {
		t.Errorf("head = %+v", head)
	}
	wantBody(t, s, "data/f.parquet", string(body))
	if err := s.CreateFile(t.Context(), "data/g", path+"-absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent source: %v", err)
	}
	if _, err := s.Get(t.Context(), "data/g"); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("a failed creation left something: %v", err)
	}
}

func copied(t *testing.T, s sinks.Store) {
	must(t, s.Create(t.Context(), "v1/a b+c.parquet", []byte("one")))
	must(t, s.Copy(t.Context(), "v1/a b+c.parquet", "v2/a"))
	wantBody(t, s, "v2/a", "one")
	head, err := s.Head(t.Context(), "v2/a")
	must(t, err)
	if head.SHA256 != schemas.HashBytes([]byte("one")) {
		t.Errorf("the copy's hash is %q", head.SHA256)
	}
	must(t, s.Create(t.Context(), "other", []byte("two")))
	if err := s.Copy(t.Context(), "other", "v2/a"); !errors.Is(err, sinks.ErrExists) {
		t.Errorf("copying over an object: %v, want ErrExists", err)
	}
	if err := s.Copy(t.Context(), "absent", "v2/b"); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("copying a missing object: %v, want ErrNotFound", err)
	}
	must(t, s.Delete(t.Context(), "v1/a b+c.parquet"))
	wantBody(t, s, "v2/a", "one")
}

func swap(t *testing.T, s sinks.Store) {
	if err := s.Swap(t.Context(), "latest.json", nil, []byte("x")); !errors.Is(err, sinks.ErrChanged) {
		t.Errorf("swapping an absent object: %v, want ErrChanged", err)
	}
	must(t, s.Create(t.Context(), "latest.json", []byte("one")))
	must(t, s.Swap(t.Context(), "latest.json", []byte("one"), []byte("two")))
	if err := s.Swap(t.Context(), "latest.json", []byte("one"), []byte("three")); !errors.Is(err, sinks.ErrChanged) {
		t.Errorf("swapping a changed object: %v, want ErrChanged", err)
	}
	wantBody(t, s, "latest.json", "two")
}

// swapRace lets eight writers replace the same content concurrently.
func swapRace(t *testing.T, s sinks.Store) {
	must(t, s.Create(t.Context(), "p", []byte("start")))
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.Swap(t.Context(), "p", []byte("start"), fmt.Appendf(nil, "%d", i)) })
	}
	wg.Wait()
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			wantBody(t, s, "p", fmt.Sprint(i))
		} else if !errors.Is(err, sinks.ErrChanged) {
			t.Errorf("loser %d got %v, want ErrChanged", i, err)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners, want 1", winners)
	}
}

func list(t *testing.T, s sinks.Store) {
	for o, err := range s.List(t.Context(), "") {
		t.Errorf("empty store lists %v, %v", o, err)
	}
	var want []string
	for i := range 1010 { // more than one page of S3
		want = append(want, fmt.Sprintf("p/%04d", i))
	}
	want = append(want, "p.x", "p/sub/dir/z", "q")
	var creating errgroup.Group
	creating.SetLimit(16)
	for _, key := range want {
		creating.Go(func() error { return s.Create(t.Context(), key, []byte("12")) })
	}
	must(t, creating.Wait())
	sorted := append([]string{"p.x"}, want[:1010]...)
	sorted = append(sorted, "p/sub/dir/z", "q")
	for prefix, wanted := range map[string][]string{
		"": sorted, "p/": sorted[1 : len(sorted)-1], "p": sorted[:len(sorted)-1],
		"p/sub/": {"p/sub/dir/z"}, "p/000": want[:10], "none/": nil,
	} {
		var got []string
		for o, err := range s.List(t.Context(), prefix) {
			must(t, err)
			if o.Size != 2 {
				t.Errorf("%s has size %d", o.Key, o.Size)
			}
			got = append(got, o.Key)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("list %q: %s", prefix, diff)
		}
	}
	n := 0
	for range s.List(t.Context(), "p/") {
		if n++; n == 3 {
			break
		}
	}
}

func missing(t *testing.T, s sinks.Store) {
	_, getErr := s.Get(t.Context(), "no/such")
	_, openErr := s.Open(t.Context(), "no/such")
	_, headErr := s.Head(t.Context(), "no/such")
	for name, err := range map[string]error{"get": getErr, "open": openErr, "head": headErr} {
		if !errors.Is(err, sinks.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

func remove(t *testing.T, s sinks.Store) {
	must(t, s.Create(t.Context(), "gone", []byte("x")))
	must(t, s.Delete(t.Context(), "gone"))
	must(t, s.Delete(t.Context(), "gone"))
	if _, err := s.Get(t.Context(), "gone"); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("deleted object: %v", err)
	}
	must(t, s.Create(t.Context(), "gone", []byte("y")))
}

func keys(t *testing.T, s sinks.Store) {
	for _, key := range []string{"", "/abs", "../up", "a/../../up", "a//b", "a/", ".", "a\x00b", `a\b`, ".tracesmith-x"} {
		if err := s.Create(t.Context(), key, nil); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}

func probeHolds(t *testing.T, s sinks.Store) {
	must(t, s.Probe(t.Context()))
	for o := range s.List(t.Context(), "") {
		t.Errorf("the probe left %s", o.Key)
	}
}

func cancelled(t *testing.T, s sinks.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Create(ctx, "k", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v, want context.Canceled", err)
	}
}

func wantBody(t *testing.T, s sinks.Store, key, want string) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %d bytes %.20q, want %d bytes %.20q", key, len(got), got, len(want), want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
