package provenance

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed moved.txt
var movedText string

var moved = pairs(movedText)

var (
	scheme = regexp.MustCompile(`^([a-z+]+://)?([^@/\s]*@)?(www\.)?`)
	// A mirror names its upstream and the commit: owner__name.0123abcd.
	mirror = regexp.MustCompile(`^(?:[^/]+/)*([^/]+?)__([^/]+)\.[0-9a-f]{7,40}$`)
	// An instance names its upstream and the request: owner__name-1234.
	instance = regexp.MustCompile(`^([^/]+?)__([^/]+)-[0-9]+$`)
	// An instance of a mirror names what was done to it as well: owner__name.0123abcd.kind__id.
	mirrored = regexp.MustCompile(`^[^/]+?__[^/]+?\.[0-9a-f]{7,40}(\.)[^/]+$`)
	plain    = regexp.MustCompile(`^[^/.\s]+/[^/\s]+$`)
)

// Canonical returns the upstream of a repository as host/owner/name in lower case, without
// scheme, user, ".git" or a path below it. It resolves a mirror (owner__name.<commit>) to its
// original, and a repository that has changed hands to its present owner. It returns any
// other name in lower case.
func Canonical(repo string) string {
	name := strings.ToLower(strings.TrimSpace(repo))
	name = strings.TrimSuffix(strings.TrimRight(name, "/"), ".git")
	for _, form := range []*regexp.Regexp{mirror, instance} {
		if m := form.FindStringSubmatch(name); m != nil {
			name = m[1] + "/" + m[2]
		}
	}
	if rest, ok := strings.CutPrefix(name, "git@"); ok { // git@host:owner/name
		name = strings.Replace(rest, ":", "/", 1)
	}
	name = scheme.ReplaceAllString(name, "")
	if plain.MatchString(name) {
		name = "github.com/" + name
	}
	if parts := strings.Split(name, "/"); len(parts) > 3 && strings.Contains(parts[0], ".") {
		name = strings.TrimSuffix(strings.Join(parts[:3], "/"), ".git")
	}
	if now, ok := moved[name]; ok {
		return now
	}
	return name
}

// Named is the repository that the id of an instance names, in a form that Canonical reads;
// "" if the id has none of the known forms.
func Named(id string) string {
	switch name := strings.ToLower(id); {
	case instance.MatchString(name), mirror.MatchString(name):
		return id
	case mirrored.MatchString(name):
		return id[:mirrored.FindStringSubmatchIndex(name)[2]]
	}
	return ""
}

func pairs(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
			out[f[0]] = f[1]
		}
	}
	return out
}
