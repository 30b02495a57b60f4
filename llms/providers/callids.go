package providers

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
)

// vendorID is id where the vendor takes it, and else nine letters and digits made
// of it, which every vendor takes. The same id always becomes the same, so that
// prompts stay stable; the record keeps the original.
func vendorID(form *regexp.Regexp, id string) string {
	if form.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:9]
}
