package provenance

import "strings"

// licenses are SPDX ids with words that only their texts have, the narrower ones
// first.
var licenses = []struct {
	id    string
	words []string
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

// License is the SPDX id of a licence's text, "" for one that is not known.
func License(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
next:
	for _, l := range licenses {
		for _, w := range l.words {
			if !strings.Contains(text, w) {
				continue next
			}
		}
		return l.id
	}
	return ""
}
