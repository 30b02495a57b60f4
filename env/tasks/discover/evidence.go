package discover

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// Fact is something that the repository says about its setup or tests.
type Fact struct {
	About string `json:"about"` // python, install, requirements, options, layout, version
	Value string `json:"value"`
	From  string `json:"from"` // file and place in it, such as "setup.cfg: options.python_requires"
}

// requirementSet is a set of requirements that one place states: an extra, a group, a file or a list.
type requirementSet struct {
	from   string   // as in Fact
	rank   int      // lower ranks are tried first
	extra  string   // extra of the project
	group  string   // name in [dependency-groups]
	file   string   // requirements file
	listed []string // requirements
}

// Ranks of requirement sets.
const (
	rankTest  = iota // meant for the tests
	rankDev          // meant for developers
	rankTools        // what tox, nox and CI install
)

// evidence is all that the repository says about its setup and tests.
type evidence struct {
	tree  *workspace.Tree
	paths []string
	facts []Fact

	project      string   // the file that makes the checkout installable, "" if none does
	version      string   // version of the project, "" if unknown
	versionFile  string   // file to which the build writes the version, relative to the root
	buildTools   []string // packages that build the project
	versionTools []string // tools through which the build reads the version from git
	python       []Fact   // version specifiers
	classifiers  []string // minor versions of Python that trove classifiers name
	dependencies bool     // the project needs other packages
	compiled     bool     // the project has extension modules
	sets         []requirementSet
	own          []string        // requirements of the project
	known        []string        // requirements of all extras, groups and files
	optional     []string        // those of known that are not meant for tests
	addopts      string          // pytest options in settings
	plugins      []string        // distributions that the settings of pytest need
	pytest       bool            // something names pytest
	unittest     bool            // test files contain unittest.TestCase
	roots        []string        // directories of packages that the metadata names
	source       string          // directory of the packages, "" if it is the root
	tests        []string        // directories of tests, or test files in the root
	collected    bool            // pytest collects test files by their names
	oddlyNamed   []string        // test files that it does not collect by their names
	imports      map[string]bool // top-level modules that the tests import
	unknown      []string        // missing modules that no known package provides
}

// gather reads the evidence from the files of a checkout.
func gather(tree *workspace.Tree) *evidence {
	e := &evidence{tree: tree, paths: tree.Paths(), imports: map[string]bool{}}
	e.readPyproject()
	e.readSetupCfg()
	e.readSetupPy()
	e.readPytestFiles()
	e.readTox()
	e.readNox()
	e.readCI()
	e.readRequirements()
	e.readMetadata()
	e.readLayout()
	e.buildTools = unique(append(append(e.buildTools, "setuptools", "wheel"), e.versionTools...))
	slices.SortStableFunc(e.sets, func(a, b requirementSet) int { return a.rank - b.rank })
	e.plugins = unique(e.plugins)
	return e
}

// maxText is the size in bytes of the largest file that is read.
const maxText = 1 << 20

// text returns a file's content, or "" if the file does not exist, is a link or is larger than maxText.
func (e *evidence) text(name string) string {
	if _, found := slices.BinarySearch(e.paths, name); !found {
		return ""
	}
	data, _, link, err := e.tree.File(name)
	if err != nil || link || len(data) > maxText {
		return ""
	}
	return strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
}

// addRoot records a directory of packages that the metadata names.
func (e *evidence) addRoot(dir string) {
	if dir = path.Clean(dir); dir != "." && !path.IsAbs(dir) && !strings.HasPrefix(dir, "..") && !slices.Contains(e.roots, dir) {
		e.roots = append(e.roots, dir)
	}
}

func (e *evidence) addFact(about, value, from string) {
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		e.facts = append(e.facts, Fact{about, value, from})
	}
}

// addRequirements records a set of requirements, unless it is empty or known.
func (e *evidence) addRequirements(s requirementSet) {
	s.listed = e.clean(s.listed)
	if s.extra == "" && s.group == "" && s.file == "" && len(s.listed) == 0 {
		return
	}
	for i, have := range e.sets {
		if have.extra == s.extra && have.group == s.group && have.file == s.file && slices.Equal(have.listed, s.listed) {
			e.sets[i].rank = min(have.rank, s.rank)
			return
		}
	}
	e.sets = append(e.sets, s)
	value := strings.Join(s.listed, " ")
	switch {
	case s.extra != "":
		value = "extra " + s.extra
	case s.group != "":
		value = "dependency group " + s.group
	case s.file != "":
		value = "file " + s.file
	}
	e.addFact("requirements", value, s.from)
}

// clean returns the requirements of a list without duplicates, developer tools, and entries that do not name a
// package, such as URLs and variables.
func (e *evidence) clean(list []string) []string {
	var out []string
	for _, r := range list {
		r = strings.TrimSpace(r)
		if name := distribution(r); name == "" || developerTools[name] || strings.ContainsAny(r, "{}$\n") {
			continue
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// readPytestSettings records the settings of pytest that name options, plugins or directories of tests.
func (e *evidence) readPytestSettings(from string, get func(key string) string) {
	e.pytest = true
	e.collected = e.collected || get("python_files") != ""
	if opts := get("addopts"); opts != "" {
		e.addopts += " " + opts
		e.addFact("options", "addopts "+opts, from)
	}
	for _, r := range strings.FieldsFunc(get("required_plugins"), func(r rune) bool { return r == ' ' || r == '\n' || r == ',' }) {
		if distribution(r) != "" {
			e.plugins = append(e.plugins, r)
			e.addFact("options", "required_plugins "+r, from)
		}
	}
	for _, key := range []string{"asyncio_mode", "timeout", "trio_mode", "env", "django_settings_module", "mypy_plugin", "qt_api", "doctest_plus", "remote_data_strict"} {
		if get(key) != "" {
			e.plugins = append(e.plugins, pluginOfSetting[key])
			e.addFact("options", key, from)
		}
	}
	for _, dir := range strings.Fields(get("testpaths")) {
		if dir = path.Clean(dir); !strings.ContainsAny(dir, "*[") {
			e.addFact("layout", "testpaths "+dir, from)
		}
	}
}

var requirementForm = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~;@(,].*)?$`)

// distribution returns the normalized package name of a requirement, or "" if the text is not a requirement.
func distribution(requirement string) string {
	m := requirementForm.FindStringSubmatch(strings.TrimSpace(requirement))
	if m == nil {
		return ""
	}
	return strings.ToLower(separators.ReplaceAllString(m[1], "-"))
}

var separators = regexp.MustCompile(`[-_.]+`)

// unique returns the non-empty strings of a list without duplicates.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
