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

// PrintsSchema is the schema of a line about a repository in a file of prints.
const PrintsSchema = "tracesmith.hashes/1"

// Prints identifies a repository by its content, whatever its name; it is a line of a file of
// prints. A function's hash covers its name and its code without positions, comments,
// docstrings and long literals (env/mutate, Function.Before), so that neither another layout
// of the text nor another path hides a copy.
type Prints struct {
	Schema    string   `json:"schema"`
	Repo      string   `json:"repo"`      // canonical name, or local/NAME
	Benchmark string   `json:"benchmark"` // that takes tasks from it
	Trees     int      `json:"trees"`     // number of states of it
	Functions []string `json:"functions"` // SHA-256 in hex, sorted, each once
}

// Add adds functions and keeps them sorted and unique.
func (p *Prints) Add(functions []string) {
	p.Functions = append(p.Functions, functions...)
	slices.Sort(p.Functions)
	p.Functions = slices.Compact(p.Functions)
}

// Bounds of a file of prints.
const (
	maxPrintsLine = 64 << 20
	maxFunctions  = 1 << 20 // of a repository
)

var functionHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// strictly decodes one JSON object, which may have no field that into lacks.
func strictly(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("not a line of hashes (%s)", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func parsePrints(line []byte) (p Prints, err error) {
	if err := strictly(line, &p); err != nil {
		return p, err
	}
	switch {
	case p.Schema != PrintsSchema:
		return p, fmt.Errorf("its schema is not %s", PrintsSchema)
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
