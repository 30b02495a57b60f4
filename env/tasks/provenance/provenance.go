// Package provenance names repositories: the canonical upstream of a name as it
// was given, the benchmarks that take their tasks from it, and the split that it
// falls into. The lists are the data files beside this one.
//
// It imports schemas.
package provenance

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// ListVersion is that of the data files.
const ListVersion = 1

//go:embed benchmarks.txt
var benchmarksText string

//go:embed moved.txt
var movedText string

var (
	benchmarks = pairs(benchmarksText)
	moved      = pairs(movedText)
)

func pairs(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
			out[f[0]] = f[1]
		}
	}
	return out
}

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

// Canonical is the upstream of a repository as it was given: host/owner/name in
// lower case, without scheme, user, ".git" or a path below it; of a mirror
// (owner__name.<commit>) its original, of one that changed hands its present
// owner. A name that is no hosted repository comes back in lower case.
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

// Named is the repository that an instance's id names by its form, as it would be
// given; "" if it has none of the forms.
func Named(id string) string {
	switch name := strings.ToLower(id); {
	case instance.MatchString(name), mirror.MatchString(name):
		return id
	case mirrored.MatchString(name):
		return id[:mirrored.FindStringSubmatchIndex(name)[2]]
	}
	return ""
}

// Upstream is the repository that a task's rows and its split go by: the canonical name of a
// hosted repository, local/NAME of a directory, else source/instance, which is a group of its
// own. A path on somebody's machine is never part of it.
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

// named is the canonical form of a name that says nothing of a machine; "" for any other.
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

// Source is the repository as it was given, without credentials; "" if it is not hosted.
func Source(given string) string {
	if address := Remote(given); address != "" || Hosted(given) == "" {
		return address
	}
	return given
}

// WithoutPlaces is a task whose fields do not say where its repository lies on somebody's machine.
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

// Benchmark names the public benchmark whose tasks come from a repository, "" if
// there is none. The name is made canonical first.
func Benchmark(repo string) string { return benchmarks[Canonical(repo)] }

// Benchmarks lists the canonical names of all such repositories, sorted.
func Benchmarks() []string { return slices.Sorted(maps.Keys(benchmarks)) }

// Salt and Shares decide the split where nobody says otherwise.
const Salt = "tracesmith"

// Shares are those of Splits.
var Shares = [3]float64{0.96, 0.02, 0.02}

// SplitOf is the split of a task's rows: the one that "tasks split" gave it, test
// for repositories of public benchmarks, else that of its upstream's hash.
func SplitOf(t schemas.Task, salt string) string {
	name := Upstream(t)
	switch {
	case t.Origin != nil && slices.Contains(Splits, t.Origin.Split):
		return t.Origin.Split
	case Benchmark(name) != "":
		return "test"
	}
	split, _ := Split(name, salt, Shares) // which are right
	return split
}

// Splits, in the order in which ratios name them.
var Splits = []string{"train", "validation", "test"}

// Split puts a repository into a split by the hash of its canonical name and the
// salt: new repositories never move old ones. Ratios are those of Splits and
// must add up to 1.
func Split(repo, salt string, ratios [3]float64) (string, error) {
	if sum := ratios[0] + ratios[1] + ratios[2]; math.Abs(sum-1) > 1e-9 || slices.Min(ratios[:]) < 0 {
		return "", fmt.Errorf("the shares %g, %g and %g must be at least 0 and add up to 1", ratios[0], ratios[1], ratios[2])
	}
	sum := sha256.Sum256([]byte(salt + "\x00" + Canonical(repo)))
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	split := ""
	for i, share := range ratios {
		if share == 0 {
			continue
		}
		split = Splits[i]
		if at < share {
			break
		}
		at -= share
	}
	return split, nil
}
