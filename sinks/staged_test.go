package sinks_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func staged() sinks.Staged {
	return sinks.Staged{
		Episode: schemas.EpisodeRow{EpisodeID: "e1", RunID: "r1", ConfigJSON: new(`{"a":"<&>"}`), SatisfiedCriteria: []string{}},
		Steps:   []schemas.StepRow{{EpisodeID: "e1", Message: "nul \x00 and ünïcode \u2028", Source: "agent"}},
		Tools:   []schemas.ToolSchema{{Name: "pdb", Parameters: []byte(`{"type":"object"}`)}},
		Blobs:   []sinks.Blob{{SHA256: "x", Bytes: 3, MediaType: "text/plain", Content: "abc"}},
	}
}

func TestStagedRoundTripIsExactAndDeterministic(t *testing.T) {
	a, err := sinks.EncodeStaged(staged())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := sinks.EncodeStaged(staged())
	if !bytes.Equal(a, b) {
		t.Error("equal episodes give different bytes")
	}
	got, err := sinks.DecodeStaged(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(staged(), got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeStagedRefusesDamage(t *testing.T) {
	good, _ := sinks.EncodeStaged(staged())
	empty, _ := sinks.EncodeStaged(sinks.Staged{})
	for name, body := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "cut": good[:len(good)-5], "no id": empty,
		"a name twice": compressed(t, `{"episode":{"episode_id":"a","episode_id":"b"}}`),
		"bad UTF-8":    compressed(t, "{\"episode\":{\"episode_id\":\"a\xff\"}}"),
	} {
		if _, err := sinks.DecodeStaged(body); err == nil || !strings.Contains(err.Error(), "staged episode") {
			t.Errorf("%s: got %v, want an error that says what was read", name, err)
		}
	}
}

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

func FuzzDecodeStaged(f *testing.F) {
	good, _ := sinks.EncodeStaged(staged())
	f.Add(good)
	f.Add([]byte("{}"))
	f.Fuzz(func(_ *testing.T, body []byte) { _, _ = sinks.DecodeStaged(body) })
}
