package metrics

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// leakRule detects a way to reach something that the agent must not see: a fix in the Git
// history, or anything on the network.
type leakRule struct {
	name    string
	network bool
	re      *regexp.Regexp
}

const (
	git = `\bgit\s+(?:-\S+\s+(?:\S+\s+)?)*?`
	// otherCommits matches names of commits other than HEAD.
	otherCommits = `[^|;&\n]*(?:\b[0-9a-f]{7,40}\b|\b(?:origin|upstream)/|\b(?:FETCH|ORIG|MERGE)_HEAD\b|@\{)`
	program      = `(?:^|[\s;|&("'!])` // precedes the name of a program
	installer    = `(?:(?:pip[0-9.]*|pipx|uv|conda|mamba|easy_install|apt|apt-get|npm|poetry|pdm|pipenv)\s+(?:pip\s+)?(?:install|download|add|sync))\b`
)

var leakRules = []leakRule{
	{"git_log_all", false, regexp.MustCompile(git + `log\b(?:[^|;&\n]*(?:--all|--remotes|--branches|--tags|--reflog|-g\b|\.\.)|` + otherCommits + `)`)},
	{"git_show_hash", false, regexp.MustCompile(git + `show\b` + otherCommits)},
	{"git_diff_hash", false, regexp.MustCompile(git + `diff\b` + otherCommits)},
	{"git_other_commit", false, regexp.MustCompile(git + `(?:checkout|switch|restore|reset|merge|rebase|worktree|archive|format-patch|blame)\b` + otherCommits)},
	{"git_cherry_pick", false, regexp.MustCompile(git + `cherry-pick\b`)},
	{"git_reflog", false, regexp.MustCompile(git + `(?:reflog|fsck)\b|\.git/logs`)},
	{"git_objects", false, regexp.MustCompile(git + `(?:cat-file|rev-list|unpack-objects)\b|\.git/objects`)},
	{"git_remote", true, regexp.MustCompile(git + `(?:clone|fetch|pull|ls-remote)\b`)},
	{"curl", true, regexp.MustCompile(program + `(?:curl|wget)\s`)},
	{"pip", true, regexp.MustCompile(`\b` + installer)},
	{"http_library", true, regexp.MustCompile(`\burllib\.request\b|\burllib3\.|\brequests\.(?:get|post|put|head|request)\(|\burl(?:open|retrieve)\(|\bhttpx\.(?:get|post|put|head|request|stream|Client|AsyncClient)\(|\baiohttp\.(?:ClientSession|request)\(|\bhttp\.client\b|\bsocket\.(?:create_connection|socket)\(|/dev/tcp/`)},
	{"remote_program", true, regexp.MustCompile(`(?:^|[;|&(\n!"'])\s*(?:gh|ssh|scp|rsync|nc|ncat|telnet|ftp)\s+[^\s=]`)},
}

// Leaks returns the names of the leak rules that match a call. It examines what shells, the debugger
// (which can also run programs), test runs and unknown tools execute, but not texts that a call only
// writes or searches for. repo is the repository of the task, such as github.com/owner/name; "" if
// unknown.
func Leaks(call *schemas.ToolCall, repo string) []string {
	text := programText(call)
	if text == "" {
		return nil
	}
	text = listSeparator.ReplaceAllString(text, " ")
	if Category(call.Name) == "bash" {
		text = searchCommand.ReplaceAllString(text, "$1")
	}
	var out []string
	mentionsGit := strings.Contains(text, "git")
	for _, r := range leakRules {
		if strings.HasPrefix(r.name, "git_") && !mentionsGit {
			continue
		}
		if r.re.MatchString(text) && !isHarmless(r, text, repo) {
			out = append(out, r.name)
		}
	}
	return out
}

var (
	// listSeparator matches the text between the words of a command that is given as a list.
	listSeparator = regexp.MustCompile(`["']\s*,\s*["']`)
	// searchCommand matches a command that searches for a text, which does not run the text.
	searchCommand = regexp.MustCompile("(^|[|;&\n])\\s*(?:git\\s+)?(?:grep|egrep|fgrep|rg|ag)\\s(?:\"[^\"`$]*\"|'[^']*'|[^|;&\n\"'`$])*")
	address       = regexp.MustCompile(`https?://([^\s/"'):]+)`)
	loopback      = regexp.MustCompile(`\b(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0)\b|\[::1\]`)
	installArgs   = regexp.MustCompile(installer + `([^|;&\n]*)`)
)

// isHarmless reports whether an apparent leak cannot show the fix: it accesses a local server, or
// installs local packages or those of other projects.
func isHarmless(r leakRule, text, repo string) bool {
	switch r.name {
	case "curl", "http_library":
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			if !loopback.MatchString(m[1]) {
				return false
			}
		}
		return loopback.MatchString(text)
	case "pip":
		for _, m := range installArgs.FindAllStringSubmatch(text, -1) {
			hasPackage := false
			for _, word := range strings.Fields(m[1]) {
				switch word = strings.Trim(word, `"')`); {
				case word == "-r" || word == "--requirement":
					return false
				case word == "" || strings.HasPrefix(word, "-"):
				case !strings.HasPrefix(word, ".") && !isOtherProject(word, repo):
					return false
				default:
					hasPackage = true
				}
			}
			if !hasPackage {
				return false
			}
		}
		return true
	}
	return false
}

// isOtherProject reports whether the argument of an installer names a package that has nothing to do
// with the repository. Names of projects and packages often differ, such as pvlib-python and pvlib.
func isOtherProject(argument, repo string) bool {
	project := plainName(path.Base(repo))
	if repo == "" || strings.ContainsAny(argument, "/:@") {
		return false
	}
	name := plainName(packageName.FindString(argument))
	return name != "" && !strings.Contains(project, name) && !strings.Contains(name, project)
}

var packageName = regexp.MustCompile(`^[\w.-]+`)

// plainName returns the name of a package in lower case, with hyphens.
func plainName(name string) string {
	return strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))
}

// programText returns the text that a call executes: the command of a shell, of the debugger or of a
// test run, or otherwise the string arguments of one of these or of an unknown tool. It returns ""
// for other tools.
func programText(call *schemas.ToolCall) string {
	if call == nil || isThought(call.Name) {
		return ""
	}
	switch CategoryOf(call) {
	case "bash", "pdb", "eval", "other":
	default:
		return ""
	}
	if text := Command(call); text != "" {
		return text
	}
	return stringsOf(call.Arguments)
}

// LeakClasses reports whether names contains rules about the Git history and rules about the
// network.
func LeakClasses(names []string) (history, network bool) {
	for _, r := range leakRules {
		if slices.Contains(names, r.name) {
			history, network = history || !r.network, network || r.network
		}
	}
	return history, network
}

// stringsOf joins the string arguments of a call, in the order of their names.
func stringsOf(args json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(args, &m) != nil {
		return ""
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if s, ok := m[name].(string); ok {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}
