package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// LogEntry is one entry of a step log.
type LogEntry struct {
	Kind string
	Data []byte
}

// StepLog is the durable, private record of one episode in progress. It is not safe
// for concurrent use.
type StepLog struct {
	e       *Engine
	subject string
	last    uint64 // sequence of the subject's last message
	writer  string // makes the ids of messages unique, by which a repeated try finds its own message
	n       int
}

const (
	fence     = "fence" // kind of the entry that fences off earlier writers
	headKind  = "Kind"
	headPart  = "Part"  // from 0
	headParts = "Parts" // number of parts
)

// OpenLog returns the log of a job and the entries that earlier owners wrote. It
// fences off those owners: their next Append returns ErrLeaseLost.
func (e *Engine) OpenLog(ctx context.Context, id string) (*StepLog, []LogEntry, error) {
	l := &StepLog{e: e, subject: e.stepSubject(id), writer: nuid.Next()}
	for {
		entries, err := l.read(ctx)
		if err != nil {
			return nil, nil, err
		}
		switch err := l.Append(ctx, fence, nil); {
		case errors.Is(err, ErrLeaseLost): // the old owner appended in between
			continue
		case err != nil:
			return nil, nil, err
		}
		return l, entries, nil
	}
}

// Append returns once the entry is on disk. It splits large entries into parts.
func (l *StepLog) Append(ctx context.Context, kind string, data []byte) error {
	parts := max(1, (len(data)+maxPart-1)/maxPart)
	for i := range parts {
		msg := nats.NewMsg(l.subject)
		msg.Header.Set(headKind, kind)
		msg.Header.Set(headPart, strconv.Itoa(i))
		msg.Header.Set(headParts, strconv.Itoa(parts))
		msg.Data = data[i*maxPart : min(len(data), (i+1)*maxPart)]
		l.n++
		id := l.writer + "-" + strconv.Itoa(l.n)
		err := l.e.call(ctx, "writing the step log", func(ctx context.Context) error {
			ack, err := l.e.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(l.last))
			if conflict(err) {
				return l.settleConflict(ctx, id)
			}
			if err != nil {
				return err
			}
			l.last = ack.Sequence
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settleConflict returns nil if the last message is the one that Append writes: an earlier try
// without an answer stored it. The server compares the sequence before it looks for repeated ids.
func (l *StepLog) settleConflict(ctx context.Context, id string) error {
	last, err := l.e.steps.GetLastMsgForSubject(ctx, l.subject)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	if err != nil || last.Header.Get(jetstream.MsgIDHeader) != id {
		return ErrLeaseLost
	}
	l.last = last.Sequence
	return nil
}

// read returns the complete entries in order. It skips an entry that a crash cut off.
func (l *StepLog) read(ctx context.Context) ([]LogEntry, error) {
	var out []LogEntry
	var parts entryParts
	l.last = 0
	err := l.e.messages(ctx, l.subject, func(msg *jetstream.RawStreamMsg) error {
		l.last = msg.Sequence
		entry, whole, err := parts.add(msg)
		if whole {
			out = append(out, entry)
		}
		return err
	})
	return out, err
}

// ReadLogs calls show with the complete entries of all logs and the ids of their
// jobs. The entries of one log are in order. ReadLogs does not fence off the writers.
func (e *Engine) ReadLogs(ctx context.Context, show func(id string, entry LogEntry) error) error {
	parts := map[string]*entryParts{}
	prefix := e.stepSubject("")
	return e.messages(ctx, e.stepSubject("*"), func(msg *jetstream.RawStreamMsg) error {
		id := strings.TrimPrefix(msg.Subject, prefix)
		if parts[id] == nil {
			parts[id] = &entryParts{}
		}
		entry, whole, err := parts[id].add(msg)
		if whole {
			err = show(id, entry)
		}
		return err
	})
}

// messages calls show with the messages of a subject in order.
func (e *Engine) messages(ctx context.Context, subject string, show func(*jetstream.RawStreamMsg) error) error {
	for last := uint64(0); ; {
		var msg *jetstream.RawStreamMsg
		err := e.call(ctx, "reading the step log", func(ctx context.Context) (err error) {
			msg, err = e.steps.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(subject))
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		last = msg.Sequence
		if err := show(msg); err != nil {
			return err
		}
	}
}

// entryParts joins the parts of one log's entries.
type entryParts struct {
	open LogEntry
	next int // the part expected next
}

// add adds a message; whole means that it completes an entry other than a fence.
func (a *entryParts) add(msg *jetstream.RawStreamMsg) (entry LogEntry, whole bool, err error) {
	part, err1 := strconv.Atoi(msg.Header.Get(headPart))
	parts, err2 := strconv.Atoi(msg.Header.Get(headParts))
	if err := errors.Join(err1, err2); err != nil {
		return LogEntry{}, false, fmt.Errorf("reading the step log: foreign message %d: %w", msg.Sequence, err)
	}
	if part == 0 {
		a.open, a.next = LogEntry{Kind: msg.Header.Get(headKind)}, 0
	}
	if part != a.next {
		return LogEntry{}, false, nil
	}
	a.open.Data = append(a.open.Data, msg.Data...)
	a.next++
	return a.open, a.next == parts && a.open.Kind != fence, nil
}

// PurgeLog deletes the log of a job.
func (e *Engine) PurgeLog(ctx context.Context, id string) error {
	return e.call(ctx, "purging the step log", func(ctx context.Context) error {
		return e.steps.Purge(ctx, jetstream.WithPurgeSubject(e.stepSubject(id)))
	})
}
