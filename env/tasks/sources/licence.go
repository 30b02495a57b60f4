package sources

import (
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// maxLicence is how much of a file is read, in bytes. License texts are shorter.
const maxLicence = 256 << 10

// licence returns the SPDX id of a repository's license and the file that names it: by the text of its
// license file, or else by its package metadata. It returns nothing for unknown texts and for files
// that contradict each other.
func licence(files *workspace.Tree) (id, file string) {
	for _, name := range files.Paths() {
		if !provenance.LicenseFile(name) {
			continue
		}
		found := provenance.License(contentOf(files, name))
		switch {
		case found == "":
		case id == "":
			id, file = found, name
		case id != found:
			return "", "" // one or the other, or both: a person must decide
		}
	}
	for _, name := range provenance.MetadataFiles {
		if id != "" {
			return id, file
		}
		id, file = provenance.Declared(contentOf(files, name)), name
	}
	if id == "" {
		return "", ""
	}
	return id, file
}

// contentOf is the text of a regular file, "" if there is none of that name.
func contentOf(files *workspace.Tree, name string) string {
	data, _, link, err := files.File(name)
	if err != nil || link || len(data) > maxLicence {
		return ""
	}
	return string(data)
}
