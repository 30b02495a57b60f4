package publish

import (
	"path"
	"regexp"
	"strings"
)

// A dataset's root contains a copy of the latest version for loaders, and all
// versions for tracesmith:
//
//	dataset.json      claims the place for one dataset, written first
//	lease.json        the current publisher; others wait
//	.versions/<version>/README.md data/ selection/ reports/ ... manifest.json
//	                  a version, immutable; its manifest is the commit
//	latest.json       pointer, written after the manifest
//	README.md data/ selection/ reports/ ... manifest.json
//	                  a copy of the latest version, made after the pointer
//
// Below .versions, table files do not end in .parquet: DuckDB and polars search
// directories that begin with a dot, so a pattern such as **/*.parquet would match
// every version. Layout 1, with versions in <root>/<version>/ and no copy at the
// root, can still be read.
const (
	layoutVersion   = 2
	manifestVersion = 2

	claimKey    = "dataset.json"
	leaseKey    = "lease.json"
	latestKey   = "latest.json"
	manifestKey = "manifest.json"
	cardKey     = "README.md"
	versionsDir = ".versions/"
)

// versionName is the form of a version's directory.
var versionName = regexp.MustCompile(`^[0-9a-f]{16}$`)

// versionBase returns the prefix of the keys of a version.
func versionBase(version string) string { return versionsDir + version + "/" }

// keyBelow returns the key of a file of the version whose keys begin with base.
func keyBelow(base, file string) string {
	if name, ok := strings.CutSuffix(file, ".parquet"); ok && strings.HasPrefix(base, versionsDir) {
		file = name + ".table"
	}
	return base + file
}

// baseOf returns the prefix of the keys of the version that key belongs to, judged
// by its name; "": none.
func baseOf(key string) string {
	rest, kept := strings.CutPrefix(key, versionsDir)
	version, _, below := strings.Cut(rest, "/")
	switch {
	case !below || !versionName.MatchString(version):
		return ""
	case kept:
		return versionBase(version)
	}
	return version + "/"
}

// isControlKey reports whether key belongs to the dataset as a whole.
func isControlKey(key string) bool { return key == claimKey || key == leaseKey || key == latestKey }

// VersionOf splits the place of a single version, <root>/.versions/<version>, into
// the dataset's root and the version; "" for any other place.
func VersionOf(place string) (root, version string) {
	place = strings.TrimRight(place, "/")
	root, version = path.Split(place)
	root, kept := strings.CutSuffix(root, "/"+versionsDir)
	if !kept || !versionName.MatchString(version) {
		return place, ""
	}
	return root, version
}
