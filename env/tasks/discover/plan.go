package discover

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/schemas"
)

// Ways to make the project importable.
const (
	importFromRoot  = iota // the working directory is on the module path
	importFromPath         // a .pth file names the project's source directory
	importInstalled        // editable installation
)

// plan is one way to set up and test the repository.
type plan struct {
	python       Interpreter
	project      int  // importFromRoot, importFromPath or importInstalled
	first        bool // put the source directory first on the module path, also if the project is installed
	extras       []string
	groups       []string
	files        []string // requirements files
	requirements []string
	isolate      bool     // build in isolation, and not with the environment's setuptools
	newTools     bool     // do not limit the dates of the packages that build the project
	unittest     bool     // run the tests with unittest, not with pytest
	options      []string // options of the test runner
	reasons      []string // evidence for the plan: files, and the places in them
}

func (p plan) clone() plan {
	for _, list := range []*[]string{&p.extras, &p.groups, &p.files, &p.requirements, &p.options, &p.reasons} {
		*list = slices.Clone(*list)
	}
	return p
}

// addSet adds a set of requirements, and its source to the reasons.
func (p *plan) addSet(s requirementSet) {
	addTo := func(list *[]string, v string) {
		if v != "" && !slices.Contains(*list, v) {
			*list = append(*list, v)
		}
	}
	addTo(&p.extras, s.extra)
	addTo(&p.groups, s.group)
	addTo(&p.files, s.file)
	for _, r := range s.listed {
		p.addRequirement(r)
	}
	addTo(&p.reasons, s.from)
}

// addRequirement adds a requirement and reports whether this changed the plan. If the plan already requires the
// package, the new requirement replaces the old one only if it limits the version.
func (p *plan) addRequirement(requirement string) bool {
	name := distribution(requirement)
	for i, have := range p.requirements {
		if distribution(have) == name {
			if have == requirement || requirement == name {
				return false
			}
			p.requirements[i] = requirement
			return true
		}
	}
	p.requirements = append(p.requirements, requirement)
	return true
}

// setup returns the set-up commands of the plan. newest is Config.Newest.
func (p plan) setup(e *evidence, newest time.Time) []string {
	var out []string
	if p.project == importFromPath || p.first {
		// The project comes first on the module path, because the tests must not import a released copy of it that
		// some pytest plugin requires.
		out = append(out, fmt.Sprintf(`echo "import sys; sys.path.insert(0, '%s')" > "%s/project.pth"`, path.Join(schemas.DefaultWorkdir, e.source), sitePackages))
	}
	var words []string
	if p.project == importInstalled {
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
	words = append(words, p.requirements...)
	if len(words) == 0 {
		return out
	}
	out = append(out, getUV, "export UV_SYSTEM_CERTS=1 UV_CACHE_DIR=$VIRTUAL_ENV/.uv"+e.variables(newest), removeCache)
	install := []string{"uv", "pip", "install"}
	if !p.isolate {
		out = append(out, "uv pip install 'setuptools<81' wheel")
		install = append(install, "--no-build-isolation")
	}
	if p.newTools && !newest.IsZero() {
		for _, tool := range e.buildTools {
			words = append(words, "--exclude-newer-package", tool+"="+buildToolsDate)
		}
	}
	out = append(out, shellwords.Command(append(install, words...)...))
	if e.compiled && p.project == importInstalled {
		out = append(out, keepExtensions)
	}
	return out
}

// buildToolsDate is a time at which the tools that build projects can install a project in place (PEP 660), which older
// ones cannot, and support the oldest Python.
const buildToolsDate = "2023-06-01T00:00:00Z"

// sitePackages is a shell expression for the directory in which the active environment looks for modules.
const sitePackages = `$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')`

// keepExtensions copies the extension modules that the build has made in the repository into the environment, because
// changes of the repository are not kept, and lets the interpreter find them there. A module in Python wins over an
// extension module of the same name, because it can be debugged.
const keepExtensions = `mkdir -p "$VIRTUAL_ENV/extensions"
find . -name '*.so' -not -path './build/*' -exec cp --parents -t "$VIRTUAL_ENV/extensions" {} +
cat > "` + sitePackages + `/project_extensions.py" <<END
import sys
from importlib.machinery import PathFinder

class ExtensionFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        root, kept = "$PWD/", "$VIRTUAL_ENV/extensions/"
        places = [kept + (p + "/")[len(root):] for p in path or sys.path if (p + "/").startswith(root)]
        spec = PathFinder.find_spec(name, places, target)
        return spec if spec and (spec.origin or "").endswith(".so") else None

sys.meta_path.append(ExtensionFinder)
END
echo "import project_extensions" > "` + sitePackages + `/project_extensions.pth"`

// removeCache removes uv's cache at the end of the set-up. During the set-up, the cache is in the environment because the home directory has
// a small disk limit, and because uv can link files into the same file system instead of copying them.
const removeCache = `trap 'rm -rf "$UV_CACHE_DIR"' EXIT`

// getUV makes uv available to the commands after it if the sandbox lacks uv. It does not install uv into the
// environment of the tests.
const getUV = `command -v uv >/dev/null || { python3 -m pip install -q --target /tmp/uv uv && PATH=/tmp/uv/bin:$PATH; }`

// variables returns assignments that configure uv, and that give build tools the version of the project, which they
// cannot read from git because the sandbox has no history.
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

// entrypoint returns the command that runs the tests.
func (p plan) entrypoint() string {
	words := []string{"python3", "-m", "pytest", "-q"}
	if p.unittest {
		words = []string{"python3", "-m", "unittest"}
	}
	return shellwords.Command(append(words, p.options...)...)
}

// plans returns the plans to try, most promising first.
func (e *evidence) plans(installedPythons []Interpreter) ([]plan, error) {
	pythons, err := e.interpreters(installedPythons)
	if err != nil {
		return nil, err
	}
	base := plan{python: pythons[0], isolate: true}
	base.options = e.pytestOptions()
	if e.unittest {
		base.unittest, base.options = true, e.unittestArguments()
	}
	var out []plan
	offline, ok := e.offlinePlan(base, pythons)
	if ok && !e.compiled { // otherwise tests of the extension modules would fail
		out = append(out, offline)
	}
	if !base.unittest {
		base.addRequirement("pytest")
		for _, r := range e.plugins {
			base.addRequirement(r)
		}
	}
	for _, r := range e.imported() {
		base.addRequirement(r)
	}
	project := importFromRoot
	switch {
	case e.project != "":
		project = importInstalled
	case e.source != "":
		project = importFromPath
	}
	base.project = project
	first := len(out)
	for rank := rankTest; rank <= rankTools; rank++ { // each plan adds requirements to the previous one
		p, added := base.clone(), false
		for _, s := range e.sets {
			if s.rank <= rank && (s.extra == "" || project == importInstalled) {
				p.addSet(s)
				added = added || s.rank == rank
			}
		}
		if added {
			out = append(out, p)
		}
	}
	out = append(out, base)
	if i := slices.IndexFunc(pythons, func(p Interpreter) bool { return p.minor() != pythons[0].minor() }); i > 0 {
		other := out[first].clone()
		other.python = pythons[i]
		out = append(out, other)
	}
	if project == importInstalled { // the tests may run without the build, which may fail
		bare := base.clone()
		bare.project, bare.extras, bare.groups = importFromPath, nil, nil
		out = append(out, bare)
	}
	if ok && e.compiled {
		out = append(out, offline)
	}
	if base.unittest { // pytest can run these tests, and finds them in more places
		other := out[first].clone()
		other.unittest, other.options = false, e.pytestOptions()
		other.addRequirement("pytest")
		out = append(out, other)
	}
	return out, nil
}

// imported returns the optional requirements of the project that provide modules which the tests import.
func (e *evidence) imported() []string {
	var out []string
	for _, module := range slices.Sorted(maps.Keys(e.imports)) {
		name := distribution(cmp.Or(distributionOf[module], module))
		for _, r := range e.optional {
			if distribution(r) == name && name != "pytest" && !e.hasModule(module) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// offlinePlan returns a plan that installs nothing. ok is false if the evidence mentions something to install, or if the
// tests need pytest and no interpreter has it.
func (e *evidence) offlinePlan(base plan, pythons []Interpreter) (_ plan, ok bool) {
	if e.dependencies || len(e.plugins)+len(e.imported()) > 0 || e.versionFile != "" {
		return plan{}, false
	}
	for _, s := range e.sets {
		if s.extra != "" || s.group != "" || s.file != "" || slices.ContainsFunc(s.listed, func(r string) bool { return distribution(r) != "pytest" }) {
			return plan{}, false
		}
	}
	p := base.clone()
	if !p.unittest {
		i := slices.IndexFunc(pythons, func(p Interpreter) bool { return p.Pytest })
		if i < 0 {
			return plan{}, false
		}
		p.python = pythons[i]
	}
	if e.source != "" {
		p.project = importFromPath
	}
	return p, true
}

// pytestOptions returns options that override settings to run tests in several processes, to stop early, or to
// measure coverage. It also adds the plugins of all options in the settings to e.plugins.
func (e *evidence) pytestOptions() []string {
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
	if !e.collected {
		out = append(out, e.oddlyNamed...)
	}
	return out
}

// unittestArguments returns arguments of unittest for the directory with the most test files.
func (e *evidence) unittestArguments() []string {
	dir, maxFiles, pattern := "", 0, ""
	for _, place := range e.tests {
		prefixed, suffixed := 0, 0
		for _, file := range e.paths {
			name := path.Base(file)
			switch {
			case !strings.HasPrefix(file, place+"/") || !strings.HasSuffix(name, ".py"):
			case strings.HasPrefix(name, "test"):
				prefixed++
			case strings.HasSuffix(name, "_test.py"):
				suffixed++
			}
		}
		n := max(prefixed, suffixed)
		if testDir.MatchString(path.Base(place)) {
			n += len(e.paths) // prefer a directory called tests to a package that contains tests
		}
		if n > maxFiles {
			dir, maxFiles, pattern = place, n, ""
			if prefixed == 0 && suffixed > 0 {
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
