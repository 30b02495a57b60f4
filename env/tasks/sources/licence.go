package sources

import (
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// maxLicence bounds what is read of a file: texts of licences are shorter.
const maxLicence = 256 << 10

// licence is the SPDX id of a repository by the text of its licence file, or
// else by what its package metadata declares, and the file that says so. Texts
// that are not known, and files that contradict each other, say nothing.
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
			return "", "" // under one or the other, or both: a person must say
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

// contentOf is the text of a regular file, "" where there is none of that name.
func contentOf(files *workspace.Tree, name string) string {
	data, _, link, err := files.File(name)
	if err != nil || link || len(data) > maxLicence {
		return ""
	}
	return string(data)
}
