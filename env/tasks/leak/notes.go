package leak

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	diffHeader = regexp.MustCompile(`(?m)^[ \t#>|]*(?:\+\+\+|---|\*\*\*|Index:|diff .*|# HG .*|rename to|---/\+\+\+)[ \t]+"?(\S+?)"?(?:[ \t].*)?\r?$`)
	diffLine   = regexp.MustCompile(`(?m)^[ \t#>|]*[-+!<>][-+!<>]?[ \t]*(\S.*?)[ \t]*\r?$`)
	lineAfter  = regexp.MustCompile(`(?i)^["'` + "`" + `)\]]*(?::|#L|\(|, ?line |,? on line |,? at line |,? lines? |:L| L)\(?(\d{1,6})\b`)
	blames     = regexp.MustCompile(`(?i)\b(?:bug\w*|fix\w*|wrong|broken|incorrect\w*|mistake|defect|fault\w*|should|culprit|cause\w*|injected|mutat\w*|error is|problem)\b`)
)

// patch finds a diff of a changed file, in any direction and of any other change to it.
func (s *Searcher) patch(raw string) Finding {
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
				if len(m[1]) >= smallest && (hasLine(c.Base, m[1]) || hasLine(c.Fixed, m[1])) {
					return Finding{Kind: KindPatch, Token: c.Path + ": " + show(m[1], 0, len(m[1])), Line: 1 + strings.Count(raw[:at[0]], "\n")}
				}
			}
		}
	}
	return Finding{}
}

// samePath reports whether a diff's header names a path of the repository, with other directories before it.
func samePath(name, known string) bool {
	return name == known || strings.HasSuffix(name, "/"+known) || path.Base(name) == path.Base(known)
}

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

// location finds a sentence that names a changed file, a line of the change and a fault.
func (s *Searcher) location(name, raw string) Finding {
	switch path.Ext(name) {
	case ".po", ".pot", ".lock", ".csv", ".svg", ".html":
		return Finding{}
	}
	for _, c := range s.needles.changes {
		if c.Base == nil || c.Fixed == nil {
			continue
		}
		from, to := changedLines(*c.Base, *c.Fixed)
		base := path.Base(c.Path)
		for at := 0; ; {
			i := strings.Index(raw[at:], base)
			if i < 0 {
				break
			}
			at += i + len(base)
			m := lineAfter.FindStringSubmatch(raw[at:min(len(raw), at+40)])
			if m == nil {
				continue
			}
			line, err := strconv.Atoi(m[1])
			start, end := max(0, at-200), min(len(raw), at+200)
			if err == nil && line >= from-1 && line <= to+1 && blames.MatchString(raw[start:end]) {
				return Finding{Kind: KindLocation, Token: base + m[0], Line: 1 + strings.Count(raw[:at], "\n")}
			}
		}
	}
	return Finding{}
}
