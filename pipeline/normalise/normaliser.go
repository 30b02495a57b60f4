package normalise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// maxPatch is the maximum size of a patch in its row, in bytes. A longer one goes to a blob.
const maxPatch = 256 << 10

// normaliser normalizes one episode.
type normaliser struct {
	cfg     Config
	ep      *schemas.Episode
	red     *redact.Redactor
	invalid int // bytes that were not UTF-8

	tools        []schemas.ToolSchema
	toolSets     [][]schemas.ToolSchema
	redactedSets map[string]string // hashes of redacted lists of tools, by the hash of the original list

	blobs  map[string]sinks.Blob
	leaks  []string
	hacks  []string
	leaked int // index of the first row whose call matches a leak rule, or -1
}

func newNormaliser(ep *schemas.Episode, cfg Config, red *redact.Redactor) *normaliser {
	return &normaliser{cfg: cfg, ep: ep, red: red, blobs: map[string]sinks.Blob{}, redactedSets: map[string]string{}}
}

// text returns a text without control codes and secrets, for texts that people and models read.
func (n *normaliser) text(s string) string { return n.red.Text(schemas.Plain(n.utf8(s))) }

// exact returns a text without secrets, for texts whose control codes are content, such as patches
// and code.
func (n *normaliser) exact(s string) string { return n.red.Text(n.utf8(s)) }

func (n *normaliser) utf8(s string) string {
	s, bad := schemas.ValidUTF8(s)
	n.invalid += bad
	return s
}

// texts applies text to a list. It returns nil for nil.
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

// json redacts the strings in a JSON value. If it finds no secret, it keeps the exact bytes,
// because some reasoning blocks are signed.
func (n *normaliser) json(raw []byte) (string, error) {
	v, changed, err := n.value(raw)
	if err != nil || !changed {
		return n.utf8(string(raw)), err
	}
	return n.encode(v)
}

// value decodes a JSON value and redacts its strings. changed says whether it found a secret.
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

// canonical returns the redacted canonical JSON of v.
func (n *normaliser) canonical(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	clean, _, err := n.value(raw)
	if err != nil {
		return "", err
	}
	return n.encode(clean)
}

// encode returns the canonical JSON of a redacted value. With its line breaks and quotes escaped, a text
// can look as if it had a secret. That part is replaced as well, because published texts are searched
// once more.
func (n *normaliser) encode(v any) (string, error) {
	b, err := schemas.CanonicalJSON(v)
	if err != nil {
		return "", err
	}
	if clean := n.exact(string(b)); json.Valid([]byte(clean)) {
		return clean, nil
	}
	return string(b), nil
}

// walk redacts the strings in a decoded JSON value, which it may change.
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
			if s, ok := value.(string); ok && value == v[k] { // some secrets are recognized only together with their names: "API_KEY": "..."
				value = strings.TrimPrefix(n.exact(k+"="+s), k+"=")
			}
			delete(v, k)
			v[n.exact(k)] = value
		}
	}
	return v
}

// blob stores a text as a blob and returns its hash.
func (n *normaliser) blob(content, media string) string {
	sha := schemas.HashBytes([]byte(content))
	n.blobs[sha] = sinks.Blob{SHA256: sha, Bytes: int64(len(content)), MediaType: media, Content: content}
	return sha
}

// Config configures normalization. The zero value is valid.
type Config struct {
	Producer  string        // version of tracesmith
	Commit    string        // its commit, "" if unknown
	Secrets   *redact.Known // exact values that must not be staged, such as API keys; may be nil
	SplitSalt string        // "": provenance.Salt
	Prices    string        // ID of the price table for costs; "" if there is none
	// Functions holds the functions of the Python files of the task's repository, by path. If it is
	// nil, the metrics that need them are null.
	Functions map[string][]metrics.Function
	// Names holds the identifiers in these files. If it is nil, fewer words of a sentence count as
	// names that nothing had shown.
	Names map[string]bool
	// Compare compares the values of an episode with the fixed program. If it or its result is nil, the
	// columns that need it are null.
	Compare func(*audit.Record) *audit.Evidence
}

// nonZero returns a pointer to v, or nil, which makes the column null, if v is the zero value.
func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// treeID returns the column value for the hash of a Git tree, or nil for "".
func treeID(id string) *string {
	if id == "" {
		return nil
	}
	return new("git-tree:" + id)
}

func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
