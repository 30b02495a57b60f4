package selection

import (
	"reflect"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// candidate holds the columns of an episode that are needed for ordering, grouping and
// choosing, so that steps and texts need not stay in memory.
type candidate struct {
	out     schemas.SelectionRow
	key     [4]string          // sort key of the tables
	content string             // content_sha256
	minhash string             // minhash_b64
	text    map[string]*string // values of the columns for dedup and caps; nil for null
	group   string

	attempt    int32
	created    time.Time
	turns      int32
	completion *int64
	resolved   bool
	gold       bool // gold_used
	reward     *float64

	firstFail int       // index of the first predicate that is not yes; -1 if there is none
	unknownAt []bool    // for each predicate, whether it is unknown
	reports   []verdict // for each report
}

func (r *Recipe) candidate(e *schemas.EpisodeRow) *candidate {
	c := &candidate{
		out: schemas.SelectionRow{EpisodeID: e.EpisodeID, Kept: true, Reasons: []string{}},
		key: [4]string{e.Split, e.Repo, e.InstanceID, e.EpisodeID}, text: map[string]*string{}, firstFail: -1,
		attempt: e.Attempt, created: e.CreatedAt, turns: e.NTurns, completion: e.CompletionTokens,
		resolved: schemas.Value(e.Resolved), gold: e.GoldUsed, reward: e.Reward,
		minhash: schemas.Value(e.MinhashB64), content: schemas.Value(e.ContentSHA256),
	}
	for _, col := range slices.Concat(r.Dedup, r.capColumns()) {
		c.text[col] = columnText(e, col)
	}
	c.group = r.groupOf(e)
	return c
}

// reject adds a reason against an episode.
func (c *candidate) reject(reason string) {
	if c.out.Kept {
		c.out.Kept, c.out.FirstReason = false, &reason
	}
	c.out.Reasons = append(c.out.Reasons, reason)
}

// groupOf returns the group of an episode. An episode whose group is null is a group by itself.
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

// episodesHash returns a hash of the IDs and content hashes of a set of episodes.
func episodesHash(all []*candidate) string {
	pairs := make([][2]string, len(all))
	for i, c := range all {
		pairs[i] = [2]string{c.out.EpisodeID, c.content}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return schemas.Hash(pairs)
}
