package provenance

import (
	"regexp"

	"github.com/tracesmith/tracesmith/schemas"
)

var (
	word      = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.+-]*$`)
	localName = regexp.MustCompile(`^local/[A-Za-z0-9_+-][A-Za-z0-9._+-]*$`)
)

// Upstream returns the name of a task's repository in datasets, which also decides the task's split: the canonical name
// of a hosted repository, local/NAME for a directory, or else source/instance, so that the task forms a separate group.
// It never contains a path on a machine.
func Upstream(t schemas.Task) string {
	given := t.Repo
	if t.Origin != nil && t.Origin.UpstreamRepo != "" {
		given = t.Origin.UpstreamRepo
	}
	if name := publicName(given); name != "" && given != fallbackName(t) {
		return name
	}
	return fallbackName(t)
}

// fallbackName returns the name of a task's repository if it has no public name.
func fallbackName(t schemas.Task) string { return t.Source + "/" + t.InstanceID }

// publicName returns the canonical form of a name, or "" if the name may contain a path on a machine.
func publicName(given string) string {
	if localName.MatchString(given) {
		return given
	}
	if name := Hosted(given); name != "" {
		return name
	}
	if name := Canonical(given); word.MatchString(name) {
		return name
	}
	return ""
}

// Source returns the given repository without credentials, or "" if it is not on a public host.
func Source(given string) string {
	if address := Remote(given); address != "" || Hosted(given) == "" {
		return address
	}
	return given
}

// WithoutLocalPaths returns a task that does not contain the path of its repository on this machine.
func WithoutLocalPaths(t schemas.Task) schemas.Task {
	if t.Repo != fallbackName(t) && publicName(t.Repo) == "" {
		t.Repo = fallbackName(t)
	}
	t.RepoSource = Source(t.RepoSource)
	if t.Origin != nil && t.Origin.UpstreamRepo != "" && publicName(t.Origin.UpstreamRepo) == "" {
		origin := *t.Origin
		origin.UpstreamRepo = ""
		t.Origin = &origin
	}
	return t
}
