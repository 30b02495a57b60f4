package views

import (
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// records returns the conversations of an episode for formats that record what happened
// and mask nothing: all turns before the first that comes from the gold patch.
func records(t sinks.Trajectory, o sinks.ViewOptions, notes sinks.Notes) ([]*conversation, error) {
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

// recordRows renders each of the records of an episode with row. A row without a value
// and a body is omitted.
func recordRows(
	t sinks.Trajectory, o sinks.ViewOptions, row func(c *conversation, notes sinks.Notes) (sinks.Row, error),
) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := records(t, o, notes)
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

// fileOf returns the file name of an episode below the output. It is made from the id of
// the episode, because several episodes have the same instance.
func fileOf(t sinks.Trajectory, suffix string) string {
	return safeName(t.Episode.EpisodeID) + suffix
}

// safeName turns an id, which may come from elsewhere, into one part of a path.
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

// usedGold reports whether content of an episode, and so its patch, comes from the gold
// patch.
func usedGold(t sinks.Trajectory) bool {
	return slices.ContainsFunc(t.Steps, func(s schemas.StepRow) bool {
		return s.GoldEdit != nil && *s.GoldEdit || schemas.Value(s.MaskReason) == "gold"
	})
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// known removes the keys that have no value.
func known(m map[string]any) map[string]any {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case *string:
			set(m, k, v)
		case *bool:
			set(m, k, v)
		case *int32:
			set(m, k, v)
		case *int64:
			set(m, k, v)
		case *float64:
			set(m, k, v)
		case string:
			if v == "" {
				delete(m, k)
			}
		}
	}
	return m
}

func set[T any](m map[string]any, k string, v *T) {
	if v == nil {
		delete(m, k)
		return
	}
	m[k] = *v
}
