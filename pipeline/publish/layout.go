package publish

import (
	"path"
	"regexp"
	"strings"
)

// A dataset's root holds the latest version as loaders expect it, and every version
// as tracesmith reads it:
//
//	dataset.json      claims the place for one dataset, written first
//	lease.json        who publishes now; the others wait
//	.versions/<version>/README.md data/ selection/ reports/ ... manifest.json
//	                  a version, never changed; its manifest is the commit
//	latest.json       pointer, written after the manifest
//	README.md data/ selection/ reports/ ... manifest.json
//	                  a copy of the latest version, made after the pointer
//
// Below .versions, tables do not end in .parquet: DuckDB and polars look into
// directories that begin with a dot, and a pattern such as **/*.parquet would count
// each version. Layout 1, whose versions are <root>/<version>/ and which has no copy
// at the root, can still be read.
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

// versionBase is the prefix of the keys of a version.
func versionBase(version string) string { return versionsDir + version + "/" }

// keyBelow is the key of a file of the version whose keys begin with base.
func keyBelow(base, file string) string {
	if name, ok := strings.CutSuffix(file, ".parquet"); ok && strings.HasPrefix(base, versionsDir) {
		file = name + ".table"
	}
	return base + file
}

// baseOf is the prefix of the keys of the version that key belongs to; "" for
// a key that belongs to none by its name.
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

// control tells whether key is of the dataset as a whole.
func control(key string) bool { return key == claimKey || key == leaseKey || key == latestKey }

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
