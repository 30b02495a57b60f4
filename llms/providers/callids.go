package providers

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
)

// vendorID returns id if the vendor accepts it, or else a hash of it of nine letters and
// digits, which every vendor accepts. The hash keeps prompts stable. Rows contain the
// original id.
func vendorID(form *regexp.Regexp, id string) string {
	if form.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:9]
}
