package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Get returns the record of a job; ok is false if it was never enqueued.
func (e *Engine) Get(ctx context.Context, id string) (entry Entry, ok bool, err error) {
	var kve jetstream.KeyValueEntry
	err = e.call(ctx, "reading a record", func(ctx context.Context) (err error) {
		kve, err = e.kv.Get(ctx, id)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Entry{}, false, nil
	}
	if err != nil {
		return Entry{}, false, err
	}
	entry, err = decodeEntry(kve)
	return entry, err == nil, err
}

// swap replaces a record by compare-and-swap and updates entry. It returns
// ErrLeaseLost if another process changed the record first.
func (e *Engine) swap(ctx context.Context, entry *Entry, next Record) error {
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encoding record: %w", err)
	}
	err = e.call(ctx, "updating a record", func(ctx context.Context) error {
		rev, err := e.kv.Update(ctx, entry.ID, body, entry.Revision)
		if conflict(err) {
			// An earlier try without an answer may have succeeded.
			kve, err := e.kv.Get(ctx, entry.ID)
			if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
				return err
			}
			if err != nil || string(kve.Value()) != string(body) {
				return ErrLeaseLost
			}
			rev = kve.Revision()
		} else if err != nil {
			return err
		}
		entry.Revision, entry.Record = rev, next
		return nil
	})
	return err
}

// Entries returns every record of the run. A record that changes meanwhile is
// returned in its old or its new state.
func (e *Engine) Entries(ctx context.Context) ([]Entry, error) {
	var out []Entry
	at := map[string]int{}
	err := e.entries(ctx, func(entry Entry) error {
		if i, duplicate := at[entry.ID]; duplicate {
			out[i] = entry
			return nil
		}
		at[entry.ID] = len(out)
		out = append(out, entry)
		return nil
	}, func() bool { return false })
	return out, err
}

// errStopWatch ends Watch when its function returns false.
var errStopWatch = errors.New("the watch was stopped")

// Watch calls f with every record and then with every change by any process, until
// ctx ends or f returns false. It resumes after servers were unavailable.
func (e *Engine) Watch(ctx context.Context, f func(Entry) bool) error {
	err := e.entries(ctx, func(entry Entry) error {
		if !f(entry) {
			return errStopWatch
		}
		return nil
	}, func() bool { return true })
	if errors.Is(err, errStopWatch) {
		return nil
	}
	return err
}

// entries calls show with the records of the run; see follow.
func (e *Engine) entries(ctx context.Context, show func(Entry) error, more func() bool) error {
	var s jetstream.Stream
	err := e.call(ctx, "listing records", func(ctx context.Context) (err error) {
		s, err = e.js.Stream(ctx, "KV_EPISODES_"+e.opt.RunID)
		return err
	})
	if err != nil {
		return err
	}
	prefix := "$KV.EPISODES_" + e.opt.RunID + "."
	return e.follow(ctx, s, 1, func(m jetstream.Msg, seq uint64) error {
		if m.Headers().Get("KV-Operation") != "" {
			return nil
		}
		entry := Entry{ID: strings.TrimPrefix(m.Subject(), prefix), Revision: seq}
		if err := json.Unmarshal(m.Data(), &entry.Record); err != nil {
			return fmt.Errorf("reading record of job %s: %w", entry.ID, err)
		}
		return show(entry)
	}, more)
}
