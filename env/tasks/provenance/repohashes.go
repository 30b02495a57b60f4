package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// RepoHashesSchema is the schema of a line about a repository in a file of hashes.
const RepoHashesSchema = "tracesmith.hashes/1"

// RepoHashes identifies a repository by hashes of its functions, independently of its name. Each one is a line in a
// file of hashes. The hash of a function covers its name and its code without positions, comments, docstrings and long
// literals (see Function.Before in env/mutate), so a copy is recognized even if it has another layout or path.
type RepoHashes struct {
	Schema    string   `json:"schema"`
	Repo      string   `json:"repo"`      // canonical name, or local/NAME
	Benchmark string   `json:"benchmark"` // the benchmark that takes tasks from the repository
	Trees     int      `json:"trees"`     // number of versions of the repository
	Functions []string `json:"functions"` // SHA-256 hashes in hex, sorted, without duplicates
}

// Add adds hashes of functions.
func (p *RepoHashes) Add(functions []string) {
	p.Functions = append(p.Functions, functions...)
	slices.Sort(p.Functions)
	p.Functions = slices.Compact(p.Functions)
}

// Limits of a file of hashes.
const (
	maxHashesLine = 64 << 20 // bytes of a line
	maxFunctions  = 1 << 20  // functions of a repository
)

var functionHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// decodeStrict decodes one JSON object. It refuses fields that into lacks, and text after the object.
func decodeStrict(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("not a line of hashes (%s)", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected text after the JSON object")
	}
	return nil
}

func parseRepoHashes(line []byte) (p RepoHashes, err error) {
	if err := decodeStrict(line, &p); err != nil {
		return p, err
	}
	switch {
	case p.Schema != RepoHashesSchema:
		return p, fmt.Errorf("its schema is not %s", RepoHashesSchema)
	case p.Repo == "" || p.Benchmark == "":
		return p, errors.New("it lacks a repo or a benchmark")
	case len(p.Functions) > maxFunctions:
		return p, fmt.Errorf("it has more than %d functions", maxFunctions)
	}
	for _, f := range p.Functions {
		if !functionHash.MatchString(f) {
			return p, fmt.Errorf("%.70q is not the hash of a function", f)
		}
	}
	return p, nil
}
