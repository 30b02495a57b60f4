package normalise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Caps of text in rows, in bytes; longer text goes to a blob whole.
const (
	MaxObservation = 64 << 10
	maxPatch       = 256 << 10
)

// Config of the normaliser. The zero value is usable.
type Config struct {
	Producer  string        // version of tracesmith
	Commit    string        // its commit, "" if unknown
	Secrets   *redact.Known // exact values that must not get out, such as API keys in use; nil if there are none
	SplitSalt string        // "" = provenance.Salt
	Prices    string        // id of the price table costs were computed with, "" if none
}

// Episode normalises one finished episode. It does not change ep. An episode in
// which values turned out to be secrets by what stood beside them is read twice,
// so that they are found wherever they stand. One that still holds a secret when
// all is done, in a tool's name for example, is a *redact.Found.
func Episode(ep *schemas.Episode, cfg Config) (sinks.Staged, error) {
	red := redact.New(cfg.Secrets)
	out, err := pass(ep, cfg, red)
	if wiser := red.Wiser(cfg.Secrets); err == nil && wiser != nil {
		red = wiser
		out, err = pass(ep, cfg, red)
	}
	if err == nil { // what slipped through all the same goes nowhere
		err = redact.NewChecker(cfg.Secrets).CheckAfter(red, "episode "+ep.Job.EpisodeID, out)
	}
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("normalising episode %s: %w", ep.Job.EpisodeID, err)
	}
	return out, nil
}

// Rows are those of an episode without secrets and without the columns that follow
// from them: metrics, hashes of prompts, counts of tokens. Episode takes these steps,
// too; apart they are measured.
func Rows(ep *schemas.Episode, cfg Config) (schemas.EpisodeRow, []schemas.StepRow, error) {
	return newNormaliser(ep, cfg, redact.New(cfg.Secrets)).rows()
}

func newNormaliser(ep *schemas.Episode, cfg Config, red *redact.Redactor) *normaliser {
	return &normaliser{cfg: cfg, ep: ep, red: red, blobs: map[string]sinks.Blob{}, sets: map[string]string{}}
}

func (n *normaliser) rows() (e schemas.EpisodeRow, rows []schemas.StepRow, err error) {
	if err = n.definitions(); err != nil {
		return e, nil, err
	}
	if e, err = n.episode(); err != nil {
		return e, nil, err
	}
	rows, err = n.steps(&e)
	return e, rows, err
}

func pass(ep *schemas.Episode, cfg Config, red *redact.Redactor) (sinks.Staged, error) {
	n := newNormaliser(ep, cfg, red)
	e, rows, err := n.rows()
	if err != nil {
		return sinks.Staged{}, err
	}
	if err := n.derive(&e, rows); err != nil {
		return sinks.Staged{}, err
	}
	if err := countTokens(&e, rows, n.tools); err != nil {
		return sinks.Staged{}, err
	}
	out := sinks.Staged{Episode: e, Steps: rows, Tools: n.tools, ToolSets: n.toolSets}
	for _, sha := range slices.Sorted(maps.Keys(n.blobs)) {
		out.Blobs = append(out.Blobs, n.blobs[sha])
	}
	return out, nil
}

type normaliser struct {
	cfg     Config
	ep      *schemas.Episode
	red     *redact.Redactor
	invalid int // bytes that were not UTF-8

	tools    []schemas.ToolSchema
	toolSets [][]schemas.ToolSchema
	sets     map[string]string // hash of a list of tools as it was shown -> as it is kept

	blobs  map[string]sinks.Blob
	leaks  []string
	hacks  []string
	leaked int // index of the first row that leaks, -1
}

// text cleans text a person or a model reads.
func (n *normaliser) text(s string) string { return n.red.Text(schemas.Plain(n.utf8(s))) }

// exact cleans text whose control codes are content: patches, code.
func (n *normaliser) exact(s string) string { return n.red.Text(n.utf8(s)) }

func (n *normaliser) utf8(s string) string {
	s, bad := schemas.ValidUTF8(s)
	n.invalid += bad
	return s
}

// texts cleans a list; nil stays nil.
func (n *normaliser) texts(list []string) []string {
	if list == nil {
		return nil
	}
	out := []string{}
	for _, s := range list {
		out = append(out, n.text(s))
	}
	return out
}

// json redacts the strings inside a JSON value and keeps the bytes where there
// is nothing to redact (signed blocks).
func (n *normaliser) json(raw []byte) (string, error) {
	v, changed, err := n.value(raw)
	if err != nil || !changed {
		return n.utf8(string(raw)), err
	}
	b, err := schemas.CanonicalJSON(v)
	return string(b), err
}

// value is a JSON value with its strings redacted.
func (n *normaliser) value(raw []byte) (v any, changed bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, false, fmt.Errorf("reading JSON: %w", err)
	}
	before := n.red.Written()
	v = n.walk(v)
	return v, n.red.Written() != before, nil
}

// canonical is the redacted canonical JSON of a value of ours.
func (n *normaliser) canonical(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	clean, _, err := n.value(raw)
	if err != nil {
		return "", err
	}
	b, err := schemas.CanonicalJSON(clean)
	return string(b), err
}

func (n *normaliser) walk(v any) any {
	switch v := v.(type) {
	case string:
		return n.exact(v)
	case []any:
		for i := range v {
			v[i] = n.walk(v[i])
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			value := n.walk(v[k])
			if s, ok := value.(string); ok && value == v[k] { // "API_KEY": "..." says only together what it is
				value = strings.TrimPrefix(n.exact(k+"="+s), k+"=")
			}
			delete(v, k)
			v[n.exact(k)] = value
		}
	}
	return v
}

func (n *normaliser) blob(content, media string) string {
	sha := schemas.HashBytes([]byte(content))
	n.blobs[sha] = sinks.Blob{SHA256: sha, Bytes: int64(len(content)), MediaType: media, Content: content}
	return sha
}

// derive fills the columns that follow from the rows.
func (n *normaliser) derive(e *schemas.EpisodeRow, rows []schemas.StepRow) error {
	for i, same := range history.Rebuilt(rows) {
		rows[i].PromptRebuilds = same
		if same != nil {
			e.PromptsRebuild = new(*same && (e.PromptsRebuild == nil || *e.PromptsRebuild))
		}
		if op := rows[i].ContextOp; op != nil && *op != schemas.ContextNone {
			e.ContextTrimmed = new(true)
		}
	}
	metrics.Repeats(rows)
	metrics.News(rows)
	metrics.Behaviour(e, rows)
	// A policy that knew the fix is taken to have used it in every step, but for
	// the demonstrator, which says nothing its transcript has not shown.
	metrics.Mask(rows, n.leaked, e.GoldUsed && e.Policy != "demonstrator")
	history, network := metrics.LeakClasses(n.leaks)
	slices.Sort(n.leaks)
	e.LeakPatterns, e.LeakGitHistory, e.LeakNetwork = slices.Compact(n.leaks), &history, &network
	if e.LeakPatterns == nil {
		e.LeakPatterns = []string{}
	}

	metrics.Workspaces(rows, tree(n.ep.BaseSHA), tree(n.ep.FinalSHA))
	e.MinhashB64 = some(metrics.MinHash(rows))
	hacks := n.hacks
	// A patch that cannot be read leaves its columns unknown: the agent chose the
	// names in it, and an episode is not lost over them.
	if patch, err := metrics.ParsePatch(n.ep.Patch); err == nil {
		e.PatchFiles, e.PatchAdded, e.PatchDeleted = n.texts(patch.Files), new(int32(patch.Added)), new(int32(patch.Deleted))
		e.TestPatchFiles, e.EditsTests = n.texts(patch.Tests()), new(patch.EditsTests())
		hacks = append(hacks, patch.Hacks()...)
		if gold, err := metrics.ParsePatch([]byte(n.ep.Task.GoldPatch)); err == nil {
			metrics.Gold(e, rows, patch, gold)
		}
	}
	slices.Sort(hacks)
	if hacks = slices.Compact(hacks); len(hacks) > 0 || e.EditsTests != nil {
		e.HackPatterns, e.RewardHack = append([]string{}, hacks...), new(len(hacks) > 0)
	}
	if n.noPatch() {
		e.PatchFiles, e.PatchAdded, e.PatchDeleted, e.TestPatchFiles, e.EditsTests = nil, nil, nil, nil, nil
		e.GoldPatchSimilarity, e.GoldEditFileRecall = nil, nil
	}
	if e.Resolved != nil && *e.Resolved {
		e.ResolvedAtStep = metrics.LastChange(rows)
	}
	e.ContentSHA256 = new(contentHash(rows))
	e.InvalidUTF8 = new(int32(n.invalid))
	counts, err := schemas.CanonicalJSON(n.red.Counts())
	if err != nil {
		return err
	}
	e.RedactionsJSON = new(string(counts))
	return nil
}

// contentHash is equal for episodes that say and do the same.
func contentHash(rows []schemas.StepRow) string {
	var said [][3]string
	for _, r := range rows {
		if r.Source == "agent" {
			said = append(said, [3]string{r.Message, deref(r.ToolName), deref(r.ArgumentsJSON)})
		}
	}
	return schemas.Hash(said)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// some is nil for a zero value: the column is not known.
func some[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
