package normalise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Maximum sizes of texts in rows, in bytes. A longer text goes to a blob.
const (
	MaxObservation = 64 << 10
	maxPatch       = 256 << 10
)

// normaliser normalizes one episode.
type normaliser struct {
	cfg     Config
	ep      *schemas.Episode
	red     *redact.Redactor
	invalid int // bytes that were not UTF-8

	tools        []schemas.ToolSchema
	toolSets     [][]schemas.ToolSchema
	redactedSets map[string]string // hash of a list of tools: as shown -> as staged

	blobs  map[string]sinks.Blob
	leaks  []string
	hacks  []string
	leaked int // index of the first row that leaks, -1
}

func newNormaliser(ep *schemas.Episode, cfg Config, red *redact.Redactor) *normaliser {
	return &normaliser{cfg: cfg, ep: ep, red: red, blobs: map[string]sinks.Blob{}, redactedSets: map[string]string{}}
}

// text cleans text that a person or a model reads.
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

// json redacts the strings inside a JSON value. Without a secret it keeps the bytes,
// because some blocks are signed.
func (n *normaliser) json(raw []byte) (string, error) {
	v, changed, err := n.value(raw)
	if err != nil || !changed {
		return n.utf8(string(raw)), err
	}
	b, err := schemas.CanonicalJSON(v)
	return string(b), err
}

// value decodes a JSON value and redacts its strings.
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
			if s, ok := value.(string); ok && value == v[k] { // only name and value together show the secret in "API_KEY": "..."
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

// Config configures normalization. The zero value is valid.
type Config struct {
	Producer  string        // version of tracesmith
	Commit    string        // its commit, "" if unknown
	Secrets   *redact.Known // exact values that must not be staged, such as API keys; may be nil
	SplitSalt string        // "" = provenance.Salt
	Prices    string        // id of the price table used for costs; "" if none
}

// nonZero returns nil for a zero value: the column is unknown.
func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// treeID returns the column value for a git tree; nil for "".
func treeID(id string) *string {
	if id == "" {
		return nil
	}
	return new("git-tree:" + id)
}

func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
