package leak

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	diffHeader    = regexp.MustCompile(`(?m)^[ \t#>|]*(?:\+\+\+|---|\*\*\*|Index:|diff .*|# HG .*|rename to|---/\+\+\+)[ \t]+"?(\S+?)"?(?:[ \t].*)?\r?$`)
	diffLine      = regexp.MustCompile(`(?m)^[ \t#>|]*[-+!<>][-+!<>]?[ \t]*(\S.*?)[ \t]*\r?$`)
	lineReference = regexp.MustCompile(`(?i)^["'` + "`" + `)\]]*(?::|#L|\(|, ?line |,? on line |,? at line |,? lines? |:L| L)\(?(\d{1,6})\b`)
	faultWord     = regexp.MustCompile(`(?i)\b(?:bug\w*|fix\w*|wrong|broken|incorrect\w*|mistake|defect|fault\w*|should|culprit|cause\w*|injected|mutat\w*|error is|problem)\b`)
)

// findPatch finds a diff of a file that the fix changes. The diff may be reversed, and may show another change.
func (s *Searcher) findPatch(raw string) Finding {
	if !slices.ContainsFunc(s.needles.changes, func(c Change) bool { return strings.Contains(raw, path.Base(c.Path)) }) {
		return Finding{}
	}
	for _, at := range diffHeader.FindAllStringSubmatchIndex(raw, 1000) {
		name := raw[at[2]:at[3]]
		for _, c := range s.needles.changes {
			if !samePath(name, c.Path) {
				continue
			}
			for _, m := range diffLine.FindAllStringSubmatch(raw[at[1]:min(len(raw), at[1]+(1<<16))], 500) {
				if len(m[1]) >= minBytes && (hasLine(c.Base, m[1]) || hasLine(c.Fixed, m[1])) {
					return Finding{Kind: KindPatch, Excerpt: c.Path + ": " + excerpt(m[1], 0, len(m[1])), Line: 1 + strings.Count(raw[:at[0]], "\n")}
				}
			}
		}
	}
	return Finding{}
}

// samePath reports whether a path in a diff's header may mean a path of the repository. Directories are ignored.
func samePath(name, known string) bool {
	return name == known || strings.HasSuffix(name, "/"+known) || path.Base(name) == path.Base(known)
}

// hasLine reports whether a text has a line, without regard to white space around it.
func hasLine(text *string, line string) bool {
	if text == nil {
		return false
	}
	for l := range strings.Lines(*text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}

// findLocation finds text that names a changed file and a line of the change, near a word such as "bug" or "fix".
func (s *Searcher) findLocation(name, raw string) Finding {
	switch path.Ext(name) {
	case ".po", ".pot", ".lock", ".csv", ".svg", ".html":
		return Finding{}
	}
	for _, c := range s.needles.changes {
		if c.Base == nil || c.Fixed == nil {
			continue
		}
		from, to := changedRange(*c.Base, *c.Fixed)
		base := path.Base(c.Path)
		for at := 0; ; {
			i := strings.Index(raw[at:], base)
			if i < 0 {
				break
			}
			at += i + len(base)
			m := lineReference.FindStringSubmatch(raw[at:min(len(raw), at+40)])
			if m == nil {
				continue
			}
			line, err := strconv.Atoi(m[1])
			start, end := max(0, at-200), min(len(raw), at+200)
			if err == nil && line >= from-1 && line <= to+1 && faultWord.MatchString(raw[start:end]) {
				return Finding{Kind: KindLocation, Excerpt: base + m[0], Line: 1 + strings.Count(raw[:at], "\n")}
			}
		}
	}
	return Finding{}
}
