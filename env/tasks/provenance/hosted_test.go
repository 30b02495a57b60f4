package provenance

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// places are addresses and names that reveal the path of a repository on a machine.
var places = []string{
	"/home/alice/work/pkg", "/home/alice/work/pkg.git", "/srv/git/alice/pkg", "../pkg", "./pkg", "..", "~/pkg", "~alice/work/pkg", "$HOME/work/pkg",
	"file:///home/alice/work/pkg", "file://host.example.com/home/alice/pkg", "FILE:///home/alice/pkg", `C:\Users\alice\pkg`, "C:/Users/alice/pkg", "c:pkg/alice",
	`\\server\alice\pkg`, "//server/alice/pkg", "/home/alice/pkg.bundle", "../alice/pkg.bundle", "home/alice/work/pkg", "home/alice", "Users/alice",
	"box:/home/alice/pkg", "box:alice/pkg", "alice@box:work/pkg", "git@example.com:/home/alice/pkg.git", "git@example.com:~/alice/pkg",
	"git@example.com:~alice/pkg", "ssh://alice@box/home/alice/pkg", "ssh://git@example.com/home/alice/pkg", "ssh://git@example.com/~alice/pkg",
	"ssh://git@example.com:2222/srv/alice/pkg", "https://example.com/~alice/pkg.git", "http://localhost:3000/alice/pkg", "http://127.0.0.1/alice/pkg",
	"http://[::1]/alice/pkg", "http://192.168.1.7:8080/alice/pkg", "http://alice.local/work/pkg", "https://git.alice.lan/work/pkg", "ext::sh -c alice% %S",
	"file:/home/alice/pkg", "local/../../home/alice", "local//home/alice", "rsync://box.example.com/home/alice", "/mnt/c/Users/alice/pkg", "~", "/", ".",
	"https:///home/alice/pkg", "alice/../home/pkg", "git@github.com:../alice/pkg", "%USERPROFILE%/alice/pkg", "work/alice/pkg",
}

func TestUpstreamHidesPathsOnAMachine(t *testing.T) {
	for _, place := range places {
		task := schemas.Task{Source: "file", InstanceID: "t1", Repo: place}
		if got := Upstream(task); got != "file/t1" {
			t.Errorf("the repository %q is called %q", place, got)
		}
		task.Repo, task.Origin = "", &schemas.Origin{UpstreamRepo: place}
		if got := Upstream(task); got != "file/t1" {
			t.Errorf("the upstream %q is called %q", place, got)
		}
		if got := Remote(place); got != "" {
			t.Errorf("the remote %q is accepted: %q", place, got)
		}
	}
	for given, want := range map[string]string{
		"local/pkg": "local/pkg", "two-fer": "two-fer", "a/b": "github.com/a/b", "gitlab.com/a/b": "gitlab.com/a/b",
		"https://github.com/A/B.git": "github.com/a/b", "psf__requests.0e4ae38f": "github.com/psf/requests", "https://github.com/home/b": "github.com/home/b",
	} {
		if got := Upstream(schemas.Task{Source: "file", InstanceID: "t1", Repo: given}); got != want {
			t.Errorf("%q is called %q, want %q", given, got, want)
		}
	}
}

func TestRemoteRemovesCredentials(t *testing.T) {
	for url, want := range map[string][2]string{
		"https://github.com/A/b.git":               {"https://github.com/A/b.git", "github.com/a/b"},
		"https://alice:secret@github.com/A/b.git":  {"https://github.com/A/b.git", "github.com/a/b"},
		"https://ghp_token@github.com/a/b":         {"https://github.com/a/b", "github.com/a/b"},
		"git@github.com:a/b.git":                   {"git@github.com:a/b.git", "github.com/a/b"},
		"org-123@github.com:a/b.git":               {"git@github.com:a/b.git", "github.com/a/b"},
		"ssh://git@gitlab.example.org:2222/a/b":    {"ssh://gitlab.example.org:2222/a/b", "gitlab.example.org/a/b"},
		"git://git.example.org/a/b":                {"git://git.example.org/a/b", "git.example.org/a/b"},
		"https://gitlab.com/group/sub/project.git": {"https://gitlab.com/group/sub/project.git", "gitlab.com/group/sub"},
		"git+ssh://git@github.com/a/b.git":         {"git+ssh://github.com/a/b.git", "github.com/a/b"},
		"https://github.com/a/b?token=secret#x":    {"https://github.com/a/b", "github.com/a/b"},
		"git@ssh.dev.azure.com:v3/org/project/b":   {"git@ssh.dev.azure.com:v3/org/project/b", "ssh.dev.azure.com/v3/org"},
		"https://user@bitbucket.org/team/b.git":    {"https://bitbucket.org/team/b.git", "bitbucket.org/team/b"},
		"a/b":                                      {"", "github.com/a/b"}, // as a remote it is a directory; as a name of a task it is GitHub's
	} {
		if got := Remote(url); got != want[0] || strings.Contains(got, "secret") {
			t.Errorf("Remote(%q) = %q, want %q", url, got, want[0])
		}
		if got := Hosted(url); got != want[1] {
			t.Errorf("Hosted(%q) = %q, want %q", url, got, want[1])
		}
	}
}
