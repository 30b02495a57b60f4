package publish

import (
	"path"
	"regexp"
	"strings"
)

// A dataset's root contains a copy of the latest version for loaders, and all
// versions for tracesmith:
//
//	dataset.json      claims the location for one dataset; written first
//	lease.json        names the current publisher; other publishers wait
//	.versions/<version>/README.md data/ selection/ reports/ ... manifest.json
//	                  an immutable version; writing its manifest commits it
//	latest.json       points at the latest version; written after the manifest
//	README.md data/ selection/ reports/ ... manifest.json
//	                  a copy of the latest version, made after the pointer
//
// Below .versions, table files do not end in .parquet. DuckDB and polars also search
// directories whose names begin with a dot, so a pattern such as **/*.parquet would
// otherwise match every version. Layout 1, with versions in <root>/<version>/ and no copy at the
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

	// MarksKey is the key of the marks that readers set. Publishing neither writes nor removes them.
	MarksKey = "marks.jsonl"
)

// versionName matches the name of a version's directory.
var versionName = regexp.MustCompile(`^[0-9a-f]{16}$`)

// versionBase returns the prefix of the keys of a version.
func versionBase(version string) string { return versionsDir + version + "/" }

// keyBelow returns the key of a file in the version whose keys begin with base.
func keyBelow(base, file string) string {
	if name, ok := strings.CutSuffix(file, ".parquet"); ok && strings.HasPrefix(base, versionsDir) {
		file = name + ".table"
	}
	return base + file
}

// baseOf returns the prefix of the version that a key belongs to, judged by the key alone;
// "" if it does not belong to a version.
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

// isControlKey reports whether key is a document about the dataset as a whole.
func isControlKey(key string) bool {
	return key == claimKey || key == leaseKey || key == latestKey || key == MarksKey
}

// VersionOf splits the location of a single version, <root>/.versions/<version>, into the
// dataset's root and the version. For any other location, it returns the location and "".
func VersionOf(location string) (root, version string) {
	location = strings.TrimRight(location, "/")
	root, version = path.Split(location)
	root, kept := strings.CutSuffix(root, "/"+versionsDir)
	if !kept || !versionName.MatchString(version) {
		return location, ""
	}
	return root, version
}
