package schemas

import (
	"encoding/json"
	"strings"
)

// WrittenArguments returns the arguments of a call, a JSON object, with the keys and spaces of the
// model's own text. If that text was repaired, redacted or is no object, it returns arguments_json.
func (r *StepRow) WrittenArguments() string {
	args, raw := Value(r.ArgumentsJSON), Value(r.ArgumentsRaw)
	canonical, err := CanonicalJSON(json.RawMessage(raw))
	// Readers refuse half of a surrogate pair, which decoding replaces with U+FFFD.
	if err != nil || string(canonical) != args || strings.Count(raw, "\uFFFD") != strings.Count(args, "\uFFFD") {
		return args
	}
	return raw
}

// ShownArguments returns the arguments of a call for display: WrittenArguments, or what the model wrote
// in place of a JSON object.
func (r *StepRow) ShownArguments() string {
	if r.ArgumentsValid != nil && !*r.ArgumentsValid && r.ArgumentsRaw != nil {
		return *r.ArgumentsRaw
	}
	return r.WrittenArguments()
}
