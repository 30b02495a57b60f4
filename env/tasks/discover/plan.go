package discover

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/schemas"
)

// How the project itself becomes importable.
const (
	fromRoot  = iota // the working directory is on the module path
	fromPath         // a .pth file names its directory
	installed        // an editable installation
)

// plan is one way to set up and test the repository.
type plan struct {
	python  Interpreter
	project int
	extras  []string
	groups  []string
	files   []string // requirements files
	needs   []string // requirements
	isolate bool     // false: build without isolation, with setuptools from the environment
	unit    bool     // unittest instead of pytest
	options []string // of the test runner
	reasons []string // where the parts come from
}

func (p plan) clone() plan {
	for _, list := range []*[]string{&p.extras, &p.groups, &p.files, &p.needs, &p.options, &p.reasons} {
		*list = slices.Clone(*list)
	}
	return p
}

// take adds a set of requirements.
func (p *plan) take(s set) {
	grow := func(list *[]string, values ...string) {
		for _, v := range values {
			if v != "" && !slices.Contains(*list, v) {
				*list = append(*list, v)
			}
		}
	}
	grow(&p.extras, s.extra)
	grow(&p.groups, s.group)
	grow(&p.files, s.file)
	for _, r := range s.listed {
		p.need(r)
	}
	grow(&p.reasons, s.from)
}

// need adds a requirement unless the plan has one of that name; version limits replace it.
func (p *plan) need(requirement string) bool {
	name := distribution(requirement)
	for i, have := range p.needs {
		if distribution(have) == name {
			if have == requirement || requirement == name {
				return false
			}
			p.needs[i] = requirement
			return true
		}
	}
	p.needs = append(p.needs, requirement)
	return true
}

// setup are the commands of the plan.
func (p plan) setup(e *evidence, newest time.Time) []string {
	var out []string
	if p.project == fromPath {
		// First on the module path: a copy that a plugin of pytest needs must not be tested instead.
		out = append(out, fmt.Sprintf(`echo "import sys; sys.path.insert(0, '%s')" > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth"`,
			path.Join(schemas.DefaultWorkdir, e.source)))
	}
	var words []string
	if p.project == installed {
		target := "."
		if len(p.extras) > 0 {
			target += "[" + strings.Join(p.extras, ",") + "]"
		}
		words = append(words, "-e", target)
	}
	for _, g := range p.groups {
		words = append(words, "--group", g)
	}
	for _, f := range p.files {
		words = append(words, "-r", f)
	}
	words = append(words, p.needs...)
	if len(words) == 0 {
		return out
	}
	out = append(out, getUV, "export UV_SYSTEM_CERTS=1 UV_LINK_MODE=copy"+e.variables(newest))
	if p.isolate {
		return append(out, shellwords.Command(append([]string{"uv", "pip", "install"}, words...)...))
	}
	return append(out, "uv pip install 'setuptools<81' wheel",
		shellwords.Command(append([]string{"uv", "pip", "install", "--no-build-isolation"}, words...)...))
}

// getUV makes uv available to the following commands if the sandbox has none. It stays out of the environment.
const getUV = `command -v uv >/dev/null || { python3 -m pip install -q --target /tmp/uv uv && PATH=/tmp/uv/bin:$PATH; }`

// variables are settings of uv and of build tools, which have no git history to ask.
func (e *evidence) variables(newest time.Time) string {
	out := ""
	if !newest.IsZero() {
		out += " UV_EXCLUDE_NEWER=" + newest.UTC().Format(time.RFC3339)
	}
	for _, name := range unique(e.versionTools) {
		if v := versionVariables[name]; v != "" {
			out += " " + v + "=" + shellwords.Command(cmp.Or(e.version, "0.0.1"))
		}
	}
	return out
}

// entrypoint is the command that runs the tests.
func (p plan) entrypoint() string {
	words := []string{"python3", "-m", "pytest", "-q"}
	if p.unit {
		words = []string{"python3", "-m", "unittest"}
	}
	return shellwords.Command(append(words, p.options...)...)
}

// plans lists candidates, the most promising first.
func (e *evidence) plans(installedPythons []Interpreter) ([]plan, error) {
	pythons, err := e.interpreters(installedPythons)
	if err != nil {
		return nil, err
	}
	base := plan{python: pythons[0], isolate: true}
	base.options = e.options()
	if e.unittest {
		base.unit, base.options = true, e.discovery()
	}
	var out []plan
	if p, ok := e.offline(base, pythons); ok {
		out = append(out, p)
	}
	if !base.unit {
		base.need("pytest")
		for _, r := range e.plugins {
			base.need(r)
		}
	}
	project := fromRoot
	switch {
	case e.project != "":
		project = installed
	case e.source != "":
		project = fromPath
	}
	base.project = project
	first := len(out)
	for rank := rankTest; rank <= rankTools; rank++ { // each plan adds to the one before
		p, more := base.clone(), false
		for _, s := range e.sets {
			if s.rank <= rank && (s.extra == "" || project == installed) {
				p.take(s)
				more = more || s.rank == rank
			}
		}
		if more {
			out = append(out, p)
		}
	}
	out = append(out, base)
	if i := slices.IndexFunc(pythons, func(p Interpreter) bool { return p.minor() != pythons[0].minor() }); i > 0 {
		other := out[first].clone()
		other.python = pythons[i]
		out = append(out, other)
	}
	if project == installed { // the build may fail where the tests need none
		bare := base.clone()
		bare.project, bare.extras, bare.groups = fromPath, nil, nil
		out = append(out, bare)
	}
	if base.unit { // pytest runs these tests as well, and finds them in more places
		other := out[first].clone()
		other.unit, other.options = false, e.options()
		other.need("pytest")
		out = append(out, other)
	}
	return out, nil
}

// offline is a plan that needs no network, if the evidence mentions nothing that would have to be installed.
func (e *evidence) offline(base plan, pythons []Interpreter) (plan, bool) {
	if e.dependencies || len(e.plugins) > 0 || e.versionFile != "" {
		return plan{}, false
	}
	for _, s := range e.sets {
		if s.extra != "" || s.group != "" || s.file != "" || slices.ContainsFunc(s.listed, func(r string) bool { return distribution(r) != "pytest" }) {
			return plan{}, false
		}
	}
	p := base.clone()
	if !p.unit {
		i := slices.IndexFunc(pythons, func(p Interpreter) bool { return p.Pytest })
		if i < 0 {
			return plan{}, false
		}
		p.python = pythons[i]
	}
	if e.source != "" {
		p.project = fromPath
	}
	return p, true
}

// options override settings of pytest that would run tests in other processes, stop early, or measure coverage.
func (e *evidence) options() []string {
	var out []string
	words := strings.Fields(e.addopts)
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "--cov"):
			e.plugins = append(e.plugins, "pytest-cov")
			if !slices.Contains(out, "--no-cov") {
				out = append(out, "--no-cov")
			}
		case w == "-n" || strings.HasPrefix(w, "-n") && len(w) > 2 || strings.HasPrefix(w, "--numprocesses"):
			e.plugins = append(e.plugins, "pytest-xdist")
			out = append(out, "-n", "0")
		case w == "-x" || w == "--exitfirst" || strings.HasPrefix(w, "--maxfail"):
			out = append(out, "--maxfail=0")
		case w == "-p" && i+1 < len(words):
			if d := pluginOfModule[words[i+1]]; d != "" {
				e.plugins = append(e.plugins, d)
			}
		case strings.HasPrefix(w, "--"):
			name, _, _ := strings.Cut(w, "=")
			if d := pluginOfOption(name); d != "" {
				e.plugins = append(e.plugins, d)
			}
		}
	}
	e.plugins = unique(e.plugins)
	return out
}

// discovery are the arguments of unittest.
func (e *evidence) discovery() []string {
	dir, most, pattern := "", 0, ""
	for _, place := range e.tests {
		usual, suffixed := 0, 0
		for _, file := range e.paths {
			name := path.Base(file)
			switch {
			case !strings.HasPrefix(file, place+"/") || !strings.HasSuffix(name, ".py"):
			case strings.HasPrefix(name, "test"):
				usual++
			case strings.HasSuffix(name, "_test.py"):
				suffixed++
			}
		}
		n := max(usual, suffixed)
		if testDir.MatchString(path.Base(place)) {
			n += len(e.paths) // a directory called tests comes before a package with a test in it
		}
		if n > most {
			dir, most, pattern = place, n, ""
			if usual == 0 && suffixed > 0 {
				pattern = "*_test.py"
			}
		}
	}
	if dir == "" {
		return []string{"discover"}
	}
	out := []string{"discover", "-s", dir}
	if pattern != "" {
		out = append(out, "-p", pattern)
	}
	if _, found := slices.BinarySearch(e.paths, dir+"/__init__.py"); found {
		out = append(out, "-t", ".")
	}
	return out
}
