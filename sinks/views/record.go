package views

import (
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// recordConversations returns the conversations of an episode for formats that have no mask for
// turns. Unless o.AllowGold is set, it cuts each conversation before its first turn that comes
// from the gold patch.
func recordConversations(t sinks.Trajectory, o sinks.ViewOptions, notes sinks.Notes) ([]*conversation, error) {
	all, err := conversationsOf(t, o, notes)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		gold := slices.IndexFunc(c.turns, func(t turn) bool { return t.gold })
		if gold < 0 || o.AllowGold {
			continue
		}
		notes["turns_cut_gold"] += len(c.turns) - gold
		c.turns = c.turns[:gold]
	}
	return slices.DeleteFunc(all, func(c *conversation) bool { return len(c.turns) == 0 }), nil
}

// recordRows renders each conversation of an episode with row. It omits rows that have
// neither a value nor a body.
func recordRows(
	t sinks.Trajectory, o sinks.ViewOptions, row func(c *conversation, notes sinks.Notes) (sinks.Row, error),
) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := recordConversations(t, o, notes)
	if err != nil {
		return nil, notes, err
	}
	var rows []sinks.Row
	for _, c := range conversations {
		r, err := row(c, notes)
		if err != nil {
			return nil, notes, err
		}
		if r.Value != nil || r.Body != nil {
			rows = append(rows, r)
		}
	}
	return rows, notes, nil
}

// fileOf returns the file name of an episode below the output. The name contains the id of
// the episode and not of the instance, because several episodes have the same instance.
func fileOf(t sinks.Trajectory, suffix string) string {
	return safeName(t.Episode.EpisodeID) + suffix
}

// safeName turns an id, which may come from another program, into one part of a path.
func safeName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, s)
	if strings.Trim(s, ".") == "" {
		return "_"
	}
	return s
}

// usedGold reports whether steps of an episode, and therefore its patch, come from the gold
// patch.
func usedGold(t sinks.Trajectory) bool {
	return slices.ContainsFunc(t.Steps, func(s schemas.StepRow) bool {
		return s.GoldEdit != nil && *s.GoldEdit || schemas.Value(s.MaskReason) == "gold"
	})
}

// timestamp returns a time in RFC 3339, or "" for nil.
func timestamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// withoutEmpty dereferences the pointers in m, and removes the keys whose value is nil, a nil
// pointer or "". A pointer to "" stays as "": it is a known value, such as an empty patch.
func withoutEmpty(m map[string]any) map[string]any {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case *string:
			setOrDelete(m, k, v)
		case *bool:
			setOrDelete(m, k, v)
		case *int32:
			setOrDelete(m, k, v)
		case *int64:
			setOrDelete(m, k, v)
		case *float64:
			setOrDelete(m, k, v)
		case string:
			if v == "" {
				delete(m, k)
			}
		}
	}
	return m
}

// setOrDelete sets a key to the value of v, or deletes it if v is nil.
func setOrDelete[T any](m map[string]any, k string, v *T) {
	if v == nil {
		delete(m, k)
		return
	}
	m[k] = *v
}
