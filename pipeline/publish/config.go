package publish

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/sinks"
)

// tablesVersion is part of the ID of every version. Increment it when publishing the same
// inputs writes different tables.
const tablesVersion = 3

// textVersion is part of the ID of every version. Increment it when the card, the reports or
// the figures change.
const textVersion = 14

// Config says what to publish and where.
type Config struct {
	Staging []sinks.Store // run directories, each with episodes in staging/
	Dest    sinks.Store   // root of the dataset
	Name    string        // of the dataset
	// Selection is a recipe or a selection file; nil means selection.Default.
	Selection selection.Selector
	// Benchmarks are compared with the episodes, for reports/contamination.json. If it is
	// nil, only the built-in lists of repositories are compared.
	Benchmarks *provenance.Comparison
	Imported   string             // format of imported episodes, for the card; "" for episodes of runs
	Secrets    *redact.Known      // exact values that must not be published
	Producer   string             // version of this program, recorded in every table
	Scratch    string             // directory for temporary files; "" means the system's
	MaxShard   int64              // bytes of values per shard; 0 means shard.MaxBytes
	Lease      time.Duration      // duration of the publishing lease (see leaseState); 0 means 30 s
	Progress   func(stage string) // called at the beginning of each stage; may be nil
}

// check validates the configuration and sets the default selection.
func (c *Config) check() error {
	switch {
	case len(c.Staging) == 0:
		return errors.New("publishing: no run directory given: name at least one")
	case c.Producer == "":
		return errors.New("publishing: no producer version given")
	}
	if err := checkName(c.Name); err != nil {
		return err
	}
	if c.Selection == nil {
		s, err := selection.Load(selection.Default)
		if err != nil {
			return err
		}
		c.Selection = s
	}
	return nil
}

func (c *Config) reportStage(stage string) {
	if c.Progress != nil {
		c.Progress(stage)
	}
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\\n\x00") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%w %q: want one word without slashes that does not begin with a dot", ErrName, name)
	}
	return nil
}
