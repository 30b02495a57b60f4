package provenance

import "strings"

// licenses are SPDX ids with phrases that identify the texts of the licenses. A more specific license comes first.
var licenses = []struct {
	id      string
	phrases []string
}{
	{"AGPL-3.0", []string{"affero general public license", "version 3"}},
	{"LGPL-3.0", []string{"lesser general public license", "version 3"}},
	{"LGPL-2.1", []string{"lesser general public license", "version 2.1"}},
	{"GPL-3.0", []string{"general public license", "version 3"}},
	{"GPL-2.0", []string{"general public license", "version 2"}},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}},
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"PSF-2.0", []string{"python software foundation license"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose"}},
	{"MIT-0", []string{"mit no attribution"}},
	{"MIT", []string{"permission is hereby granted, free of charge"}},
	{"Unlicense", []string{"free and unencumbered software released into the public domain"}},
}

// License returns the SPDX id of the license with the given text, or "" if it is unknown.
func License(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
next:
	for _, l := range licenses {
		for _, phrase := range l.phrases {
			if !strings.Contains(text, phrase) {
				continue next
			}
		}
		return l.id
	}
	return ""
}
