// Package imports converts trajectories of other tools into staged episodes. Each format has
// its own source file with a parser, which fills a record (record.go). Columns without a value
// in the trajectory are null. A trajectory that claims success does not get a verdict; the claim
// goes into claimed_resolved and verify_reason.
package imports

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// MaxBytes is the maximum size of a trajectory: of a file, or of a row of a file with many.
const MaxBytes = 256 << 20

// parsers holds the parsers by format. A parser takes the base name of a file, or the ID of a row's
// instance, which may be "", and the JSON of the trajectory. Its errors contain the position in it.
var parsers = map[string]func(name string, raw []byte) (*record, error){
	"debug-gym":      parseDebugGym,
	"swe-agent":      parseSWEAgent,
	"mini-swe-agent": parseMiniSWE,
	"atif":           parseATIF,
	"openhands":      parseOpenHands,
	"messages":       parseMessages,
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(parsers)) }

// Read converts one trajectory into a staged episode. name is File.Name of its file. modified
// becomes the time of the episode if the trajectory contains no times. cfg applies as for recorded
// episodes, including redaction.
func Read(format, name string, raw []byte, modified time.Time, cfg normalise.Config) (sinks.Staged, error) {
	out, err := convert(format, path.Base(name), raw, origin{file: name, modified: modified}, cfg)
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// convert converts the JSON of a trajectory into a staged episode.
func convert(format, name string, raw []byte, from origin, cfg normalise.Config) (sinks.Staged, error) {
	if len(raw) > MaxBytes {
		return sinks.Staged{}, fmt.Errorf("%d bytes, but at most %d are supported", len(raw), MaxBytes)
	}
	parse, ok := parsers[format]
	if !ok {
		return sinks.Staged{}, fmt.Errorf("unknown format %q: choose one of %s", format, strings.Join(Formats(), ", "))
	}
	r, err := parse(name, raw)
	if err != nil {
		return sinks.Staged{}, err
	}
	if !slices.ContainsFunc(r.steps, func(s schemas.Step) bool { return s.Source == "agent" }) {
		return sinks.Staged{}, fmt.Errorf("no step of an agent: is this a %s trajectory?", format)
	}
	ep, err := r.episode(format, raw, from)
	if err != nil {
		return sinks.Staged{}, err
	}
	out, err := normalise.Episode(ep, cfg)
	if err != nil {
		return sinks.Staged{}, err
	}
	out.Episode.TaskSource = "import/" + format
	r.clearUnknown(&out, ep)
	return out, nil
}
