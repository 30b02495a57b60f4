package provenance

import (
	"regexp"

	"github.com/tracesmith/tracesmith/schemas"
)

var (
	word    = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.+-]*$`)
	neutral = regexp.MustCompile(`^local/[A-Za-z0-9_+-][A-Za-z0-9._+-]*$`)
)

// Upstream is the name of a task's repository in datasets, which also decides its split: the
// canonical name of a hosted repository, local/NAME of a directory, or else source/instance,
// which makes the task a group of its own. It never contains a path on a machine.
func Upstream(t schemas.Task) string {
	given := t.Repo
	if t.Origin != nil && t.Origin.UpstreamRepo != "" {
		given = t.Origin.UpstreamRepo
	}
	if name := named(given); name != "" && given != own(t) {
		return name
	}
	return own(t)
}

func own(t schemas.Task) string { return t.Source + "/" + t.InstanceID }

// named is the canonical form of a name, "" if the name may contain a path on a machine.
func named(given string) string {
	if neutral.MatchString(given) {
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

// Source is the repository as given, without credentials; "" if it is not hosted.
func Source(given string) string {
	if address := Remote(given); address != "" || Hosted(given) == "" {
		return address
	}
	return given
}

// WithoutPlaces removes the path of the repository on a machine from a task's fields.
func WithoutPlaces(t schemas.Task) schemas.Task {
	if t.Repo != own(t) && named(t.Repo) == "" {
		t.Repo = own(t)
	}
	t.RepoSource = Source(t.RepoSource)
	if t.Origin != nil && t.Origin.UpstreamRepo != "" && named(t.Origin.UpstreamRepo) == "" {
		origin := *t.Origin
		origin.UpstreamRepo = ""
		t.Origin = &origin
	}
	return t
}
