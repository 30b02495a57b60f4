package selection

import (
	"reflect"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// candidate has the columns of an episode that ordering, grouping and choosing need, so
// that steps and texts need not stay in memory.
type candidate struct {
	out     schemas.SelectionRow
	key     [4]string // sort key
	content string    // content_sha256
	minhash string    // minhash_b64
	text    map[string]*string
	group   string

	attempt    int32
	created    time.Time
	turns      int32
	completion *int64
	resolved   bool
	gold       bool // gold_used
	reward     *float64

	firstFail int    // index of the first failed predicate; -1: none
	unknownAt []bool // per predicate: it was unknown
	reports   []verdict
}

func (r *Recipe) candidate(e *schemas.EpisodeRow) *candidate {
	c := &candidate{
		out: schemas.SelectionRow{EpisodeID: e.EpisodeID, Kept: true, Reasons: []string{}},
		key: [4]string{e.Split, e.Repo, e.InstanceID, e.EpisodeID}, text: map[string]*string{}, firstFail: -1,
		attempt: e.Attempt, created: e.CreatedAt, turns: e.NTurns, completion: e.CompletionTokens,
		resolved: e.Resolved != nil && *e.Resolved, gold: e.GoldUsed, reward: e.Reward,
	}
	if e.MinhashB64 != nil {
		c.minhash = *e.MinhashB64
	}
	if e.ContentSHA256 != nil {
		c.content = *e.ContentSHA256
	}
	for _, col := range slices.Concat(r.Dedup, r.capColumns()) {
		c.text[col] = columnText(e, col)
	}
	c.group = r.groupOf(e)
	return c
}

func (c *candidate) reject(reason string) {
	if c.out.Kept {
		c.out.Kept, c.out.FirstReason = false, &reason
	}
	c.out.Reasons = append(c.out.Reasons, reason)
}

// groupOf returns the group of an episode; one without a group forms its own.
func (r *Recipe) groupOf(e *schemas.EpisodeRow) string {
	if v := columnText(e, r.Group); v != nil {
		return *v
	}
	return "\x00" + e.EpisodeID
}

// columnText returns the value of a text column; nil for null.
func columnText(e *schemas.EpisodeRow, col string) *string {
	column, _ := arrowrec.Episodes.Column(col)
	if v, ok := column.Value(reflect.ValueOf(e).Elem()).(string); ok {
		return &v
	}
	return nil
}

// identity returns a hash of the episodes' ids and content hashes.
func identity(all []*candidate) string {
	pairs := make([][2]string, len(all))
	for i, c := range all {
		pairs[i] = [2]string{c.out.EpisodeID, c.content}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return schemas.Hash(pairs)
}
