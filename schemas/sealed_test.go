package schemas_test

import (
	"bytes"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// A manifest's own hash covers every field, including those of later versions.
func TestSealCoversEveryField(t *testing.T) {
	m := schemas.Manifest{ManifestVersion: 1, Dataset: "traces <&>", Version: "v", Runs: []schemas.ManifestRun{{RunID: "r", Episodes: 3}}}
	m.Seal()
	raw, err := schemas.CanonicalJSON(m)
	if err != nil {
		t.Fatal(err)
	}
	again := m
	if again.Seal(); again.SelfSHA256 != m.SelfSHA256 || !schemas.VerifySeal(raw) {
		t.Fatalf("the hash is %s, then %s", m.SelfSHA256, again.SelfSHA256)
	}
	for old, with := range map[string]string{
		`"episodes":3`: `"episodes":4`, `"version":"v"`: `"version":"w"`, `{"dataset"`: `{"a_later_field":1,"dataset"`, `"self_sha256":"`: `"self_sha256":"0`,
	} {
		if schemas.VerifySeal(bytes.Replace(raw, []byte(old), []byte(with), 1)) {
			t.Errorf("a manifest with %s instead of %s is accepted", with, old)
		}
	}
	if m.SelfSHA256 = ""; !schemas.VerifySeal([]byte(`{"dataset":"of an earlier version"}`)) || schemas.VerifySeal([]byte("{")) {
		t.Error("a manifest without a hash is refused, or invalid JSON is accepted")
	}
}
