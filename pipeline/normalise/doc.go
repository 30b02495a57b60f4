// Package normalise turns an episode as it was recorded into what staging
// holds: control codes stripped, text valid UTF-8, secrets redacted, long text
// capped with the whole of it in a blob, and every column filled that is
// known. The same episode gives the same bytes.
//
// It imports schemas, sinks (for the staged form), agents/history (which rebuilds
// prompts from rows) and pipeline/metrics.
package normalise
