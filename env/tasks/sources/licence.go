package sources

import (
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// maxLicence is the size in bytes of the largest file that is read. License texts are shorter.
const maxLicence = 256 << 10

// License returns the SPDX id of a repository's license and the file that contains it: the license file, or else the
// package metadata. It returns "" if the license is unknown, or if license files contradict each other.
func License(files *workspace.Tree) (id, file string) {
	for _, name := range files.Paths() {
		if !provenance.LicenseFile(name) {
			continue
		}
		found := provenance.License(fileText(files, name))
		switch {
		case found == "":
		case id == "":
			id, file = found, name
		case id != found:
			return "", "" // either license or both may apply: a person must decide
		}
	}
	for _, name := range provenance.MetadataFiles {
		if id != "" {
			return id, file
		}
		id, file = provenance.DeclaredLicense(fileText(files, name)), name
	}
	if id == "" {
		return "", ""
	}
	return id, file
}

// fileText returns the text of a file, or "" if it does not exist, is a link or is larger than maxLicence.
func fileText(files *workspace.Tree, name string) string {
	data, _, link, err := files.File(name)
	if err != nil || link || len(data) > maxLicence {
		return ""
	}
	return string(data)
}
