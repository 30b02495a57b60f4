package publish

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// decodeManifest reads a manifest and checks its seal.
func decodeManifest(raw []byte) (schemas.Manifest, error) {
	m, err := parseManifest(raw)
	if err == nil && !schemas.VerifySeal(raw) {
		err = errUnsealed
	}
	return m, err
}

var errUnsealed = errors.New("it was changed: its content does not match its self_sha256")

// parseManifest decodes a manifest and checks its version, but not its seal.
func parseManifest(raw []byte) (schemas.Manifest, error) {
	var m schemas.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("not a manifest: %w", err)
	}
	if m.ManifestVersion < 1 || m.ManifestVersion > manifestVersion {
		return m, fmt.Errorf("manifest version %d, but this program reads 1 to %d: use a matching version of tracesmith", m.ManifestVersion, manifestVersion)
	}
	return m, nil
}
