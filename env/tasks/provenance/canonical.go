package provenance

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed moved.txt
var movedText string

var moved = parsePairs(movedText)

var (
	scheme = regexp.MustCompile(`^([a-z+]+://)?([^@/\s]*@)?(www\.)?`)
	// mirror matches the name of a mirror, which consists of upstream and commit: owner__name.0123abcd.
	mirror = regexp.MustCompile(`^(?:[^/]+/)*([^/]+?)__([^/]+)\.[0-9a-f]{7,40}$`)
	// instance matches an id that consists of upstream and pull request: owner__name-1234.
	instance = regexp.MustCompile(`^([^/]+?)__([^/]+)-[0-9]+$`)
	// mirrorInstance matches an id that consists of mirror and modification: owner__name.0123abcd.kind__id.
	mirrorInstance = regexp.MustCompile(`^[^/]+?__[^/]+?\.[0-9a-f]{7,40}(\.)[^/]+$`)
	ownerName      = regexp.MustCompile(`^[^/.\s]+/[^/\s]+$`)
)

// Canonical returns the name of a repository as host/owner/name in lower case, without scheme, user, ".git" or a path
// in the repository. It replaces a mirror (owner__name.<commit>) by its original, and the old name of a repository that
// has moved by the new one. It returns any other name in lower case.
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
	if ownerName.MatchString(name) {
		name = "github.com/" + name
	}
	if parts := strings.Split(name, "/"); len(parts) > 3 && strings.Contains(parts[0], ".") {
		name = strings.TrimSuffix(strings.Join(parts[:3], "/"), ".git")
	}
	if newName, ok := moved[name]; ok {
		return newName
	}
	return name
}

// RepoOfInstance returns the repository in the id of an instance, in a form that Canonical accepts. It returns "" if
// the id does not have a known form.
func RepoOfInstance(id string) string {
	switch name := strings.ToLower(id); {
	case instance.MatchString(name), mirror.MatchString(name):
		return id
	case mirrorInstance.MatchString(name):
		return id[:mirrorInstance.FindStringSubmatchIndex(name)[2]]
	}
	return ""
}

func parsePairs(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
			out[f[0]] = f[1]
		}
	}
	return out
}
