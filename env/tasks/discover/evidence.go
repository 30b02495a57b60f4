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
	From  string `json:"from"` // file, and the place in it
}

// set is a list of requirements from one place.
type set struct {
	from   string
	rank   int      // lower ranks are tried first
	extra  string   // of the project
	group  string   // of [dependency-groups]
	file   string   // a requirements file
	listed []string // requirements
}

// Ranks of sets.
const (
	rankTest  = iota // meant for the tests
	rankDev          // meant for developers
	rankTools        // what tox, nox and CI install
)

// evidence is all that was read.
type evidence struct {
	tree  *workspace.Tree
	paths []string
	facts []Fact

	project      string   // the file that makes the checkout installable, "" if none does
	version      string   // of the project, "" if unknown
	versionFile  string   // written by the build, relative to the root
	versionTools []string // through which the build asks git for the version
	python       []Fact   // version specifiers
	classifiers  []string
	dependencies bool // the project needs other packages
	sets         []set
	known        []string // requirements of all extras and groups
	addopts      string
	plugins      []string // distributions that the settings of pytest need
	pytest       bool     // something names pytest
	unittest     bool     // test files contain unittest.TestCase
	source       string   // directory of the packages, "" if it is the root
	tests        []string // directories of tests, or test files in the root
	imports      map[string]bool
}

// gather reads a tree.
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
	slices.SortStableFunc(e.sets, func(a, b set) int { return a.rank - b.rank })
	e.plugins = unique(e.plugins)
	return e
}

const maxText = 1 << 20

// text returns a file's content, "" if there is no such file or it is large.
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

func (e *evidence) fact(about, value, from string) {
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		e.facts = append(e.facts, Fact{about, value, from})
	}
}

// add keeps a set of requirements.
func (e *evidence) add(s set) {
	s.listed = e.clean(s.listed)
	if s.extra == "" && s.group == "" && s.file == "" && len(s.listed) == 0 {
		return
	}
	for _, have := range e.sets {
		if have.extra == s.extra && have.group == s.group && have.file == s.file && slices.Equal(have.listed, s.listed) {
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
	e.fact("requirements", value, s.from)
}

// clean leaves out what is no requirement of a package on its own.
func (e *evidence) clean(list []string) []string {
	var out []string
	for _, r := range list {
		r = strings.TrimSpace(r)
		if name := distribution(r); name == "" || tools[name] || strings.ContainsAny(r, "{}$\n") {
			continue
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// settings keeps options of pytest.
func (e *evidence) settings(from string, get func(key string) string) {
	e.pytest = true
	if opts := get("addopts"); opts != "" {
		e.addopts += " " + opts
		e.fact("options", "addopts "+opts, from)
	}
	for _, r := range strings.FieldsFunc(get("required_plugins"), func(r rune) bool { return r == ' ' || r == '\n' || r == ',' }) {
		if distribution(r) != "" {
			e.plugins = append(e.plugins, r)
			e.fact("options", "required_plugins "+r, from)
		}
	}
	for _, key := range []string{"asyncio_mode", "timeout", "trio_mode", "env", "django_settings_module", "mypy_plugin", "qt_api", "doctest_plus", "remote_data_strict"} {
		if get(key) != "" {
			e.plugins = append(e.plugins, pluginOfSetting[key])
			e.fact("options", key, from)
		}
	}
	for _, dir := range strings.Fields(get("testpaths")) {
		if dir = path.Clean(dir); !strings.ContainsAny(dir, "*[") {
			e.fact("layout", "testpaths "+dir, from)
		}
	}
}

var nameForm = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~;@(,].*)?$`)

// distribution returns the normalized name of a requirement, "" if it is none.
func distribution(requirement string) string {
	m := nameForm.FindStringSubmatch(strings.TrimSpace(requirement))
	if m == nil {
		return ""
	}
	return strings.ToLower(separators.ReplaceAllString(m[1], "-"))
}

var separators = regexp.MustCompile(`[-_.]+`)

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
