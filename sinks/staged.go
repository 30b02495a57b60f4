package sinks

import (
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxStagedBytes limits the size that DecodeStaged unpacks, because a staged object
// may come from an untrusted source.
const maxStagedBytes = 1 << 30

// All callers share one encoder and one decoder, because each takes several megabytes.
// Both are safe for concurrent use.
var (
	encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	})
	decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxStagedBytes))
	})
)

// StagedKey returns the key of a staged episode: staging/<run_id>/<episode_id>.json.zst.
func StagedKey(runID, episodeID string) string {
	return "staging/" + runID + "/" + episodeID + ".json.zst"
}

// EncodeStaged encodes an episode as canonical JSON in one zstd frame. Equal
// episodes give equal bytes.
func EncodeStaged(s Staged) ([]byte, error) {
	raw, err := schemas.CanonicalJSON(s)
	if err != nil {
		return nil, fmt.Errorf("encoding episode %s for staging: %w", s.Episode.EpisodeID, err)
	}
	enc, err := encoder()
	if err != nil {
		return nil, fmt.Errorf("compressing episode %s: %w", s.Episode.EpisodeID, err)
	}
	return enc.EncodeAll(raw, nil), nil
}

// DecodeStaged is the inverse of EncodeStaged. It returns an error for damaged or foreign
// data, and for data that unpacks to more than 1 GiB.
func DecodeStaged(body []byte) (Staged, error) {
	var s Staged
	dec, err := decoder()
	if err != nil {
		return s, fmt.Errorf("unpacking staged episode: %w", err)
	}
	raw, err := dec.DecodeAll(body, nil)
	if err != nil {
		return s, fmt.Errorf("unpacking staged episode: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil { // this json package is twice as fast as encoding/json here
		return s, fmt.Errorf("reading staged episode: %w", err)
	}
	if s.Episode.EpisodeID == "" {
		return s, fmt.Errorf("reading staged episode: it has no episode_id")
	}
	return s, nil
}
