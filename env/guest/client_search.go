package guest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// Walk implements env.Sandbox.
func (c *Client) Walk(ctx context.Context, w env.WalkSpec) (env.WalkResult, error) {
	timeout := beforeDeadline(ctx, cmp.Or(w.Timeout, env.DefaultSearchTimeout))
	maxCount := cmp.Or(w.MaxEntries, env.DefaultMaxEntries)
	r, err := call(ctx, c, timeout, c.svc.Walk, &guestpb.WalkRequest{
		Dir: c.guestPath(w.Dir), Depth: int64(w.Depth), Ignore: toByteSlices(w.Ignore), MaxEntries: int64(maxCount), TimeoutNs: int64(timeout),
	})
	if err != nil {
		return env.WalkResult{}, fmt.Errorf("listing %s: %w", w.Dir, err)
	}
	if len(r.Entries) > maxCount {
		return env.WalkResult{}, c.die("more entries than asked for")
	}
	out := env.WalkResult{Unreadable: int(max(r.Unreadable, 0)), Incomplete: r.Incomplete}
	for _, n := range r.Levels {
		out.Levels = append(out.Levels, int(min(max(n, 0), maxVisited)))
	}
	if len(r.Levels) > maxWalkDepth || out.Total() < len(r.Entries) {
		return env.WalkResult{}, c.die("impossible counts of entries")
	}
	for _, e := range r.Entries {
		name := string(e.Path)
		if !filepath.IsLocal(name) {
			return env.WalkResult{}, c.die("an impossible path")
		}
		kind := byte('?')
		if e.Kind == 'd' || e.Kind == 'f' || e.Kind == 'l' {
			kind = byte(e.Kind)
		}
		out.Entries = append(out.Entries, env.WalkEntry{
			Path: name, Kind: kind, Mode: e.Mode & 0o777, Size: max(e.Size, 0), Target: string(e.Target),
		})
	}
	return out, nil
}

// Search implements env.Sandbox.
func (c *Client) Search(ctx context.Context, q env.SearchSpec) (env.SearchResult, error) {
	timeout := beforeDeadline(ctx, cmp.Or(q.Timeout, env.DefaultSearchTimeout))
	maxCount, maxBytes := cmp.Or(q.MaxMatches, 100), min(cmp.Or(max(q.MaxBytes, 0), maxFound), maxFound)
	r, err := call(ctx, c, timeout, c.svc.Search, &guestpb.SearchRequest{
		Path: c.guestPath(q.Path), Pattern: []byte(q.Pattern), Literal: q.Literal, IgnoreCase: q.IgnoreCase,
		Within: toByteSlices(q.Within), Include: toByteSlices(q.Include), Exclude: toByteSlices(q.Exclude), Ignore: toByteSlices(q.Ignore),
		First: int64(q.First), Last: int64(q.Last), Context: int64(min(max(q.Context, 0), 100)),
		MaxMatches: int64(maxCount), MaxBytes: int64(maxBytes), MaxLine: int64(cmp.Or(max(q.MaxLine, 0), 2000)), TimeoutNs: int64(timeout),
	})
	if err != nil {
		return env.SearchResult{}, fmt.Errorf("searching %s: %w", q.Path, err)
	}
	out := env.SearchResult{
		Matches: max(r.Matches, 0), Files: max(r.Files, 0), LineCount: max(r.LineCount, 0), Bytes: max(r.Bytes, 0),
		Searched: max(r.Searched, 0), Binary: max(r.Binary, 0), Unreadable: max(r.Unreadable, 0),
		Incomplete: r.Incomplete, Stopped: r.Stopped,
	}
	file, matches := "", 0
	for _, l := range r.Lines {
		if len(l.File) > 0 { // only the first line of each file has the name
			file = string(l.File)
		}
		if l.Match {
			matches++
		}
		if file != "" && !filepath.IsLocal(file) || l.Number < 1 || l.Cut < 0 || l.Size-l.Cut < int64(len(l.Text)) {
			return env.SearchResult{}, c.die("an impossible line")
		}
		out.Lines = append(out.Lines, env.SearchLine{
			File: file, Number: l.Number, Text: string(l.Text), Match: l.Match, Cut: l.Cut, Size: l.Size,
		})
	}
	if matches > maxCount || int64(matches) > out.Matches {
		return env.SearchResult{}, c.die("more lines than asked for")
	}
	return out, nil
}

// beforeDeadline returns d, or the time until the deadline of ctx if that is less.
func beforeDeadline(ctx context.Context, d time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(min(d, time.Until(end)), 0)
	}
	return d
}
