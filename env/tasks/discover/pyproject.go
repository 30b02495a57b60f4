package discover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const pyproject = "pyproject.toml"

// Usual names of extras and groups for tests and for developers, most specific first.
var (
	testNames = []string{"test", "tests", "testing", "pytest", "unittest", "unittests", "test-dependencies", "hatch-test"}
	devNames  = []string{"dev", "develop", "development", "devel", "ci", "all"}
)

// table is a TOML table with unchecked contents.
type table map[string]any

// at returns the table below a path of keys, or nil if there is none.
func (t table) at(keys ...string) table {
	for _, k := range keys {
		child, _ := t[k].(map[string]any)
		t = child
	}
	return t
}

// text returns a scalar value as a string, or the strings of a list with spaces between them.
func (t table) text(key string) string {
	switch v := t[key].(type) {
	case string:
		return v
	case []any:
		return strings.Join(t.list(key), " ")
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

// list returns the strings in a list; it skips other values.
func (t table) list(key string) []string {
	var out []string
	values, _ := t[key].([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// poetryRequirements returns the packages that a table of Poetry dependencies names. It leaves out the version limits,
// whose syntax other installers do not know.
func (t table) poetryRequirements() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if name != "python" {
			out = append(out, name)
		}
	}
	return out
}

func (e *evidence) readPyproject() {
	text := e.text(pyproject)
	if text == "" {
		return
	}
	var doc table
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		e.addFact("install", "unreadable: "+err.Error(), pyproject)
		return
	}
	project, tool := doc.at("project"), doc.at("tool")
	build := doc.at("build-system")
	if project != nil || build != nil || tool.at("poetry") != nil || tool.at("flit", "metadata") != nil {
		e.setProject(pyproject, build.text("build-backend"))
	}
	e.readProject(project)
	e.readVersioning(build, tool)
	if t := tool.at("pytest", "ini_options"); t != nil {
		e.readPytestSettings(pyproject+": tool.pytest.ini_options", t.text)
	} else if t := tool.at("pytest"); t != nil {
		e.readPytestSettings(pyproject+": tool.pytest", t.text)
	}
	e.readGroups(doc.at("dependency-groups"), pyproject+": dependency-groups")
	e.readExtras(project.at("optional-dependencies").lists(), pyproject+": project.optional-dependencies")
	e.readManagers(tool)
	if dir := tool.at("setuptools", "package-dir").text(""); dir != "" {
		e.addRoot(dir)
	}
	for _, dir := range tool.at("setuptools", "packages", "find").list("where") {
		e.addRoot(dir)
	}
	e.readToxTables(tool.at("tox"))
}

// setProject records that a file makes the checkout installable. An empty backend means setuptools.
func (e *evidence) setProject(file, backend string) {
	if e.project == "" {
		e.project = file
		backend = cmp.Or(backend, "setuptools")
		e.addFact("install", "built with "+backend, file)
	}
}

func (e *evidence) readProject(project table) {
	if project == nil {
		return
	}
	e.requirePython(project.text("requires-python"), pyproject+": project.requires-python")
	e.addClassifiers(project.list("classifiers"), pyproject+": project.classifiers")
	e.addDependencies(project.list("dependencies"), pyproject+": project.dependencies")
	if v := project.text("version"); v != "" {
		e.version = v
	}
}

// addDependencies records that the project itself needs packages.
func (e *evidence) addDependencies(list []string, from string) {
	if len(list) > 0 {
		e.dependencies = true
		e.own = append(e.own, e.clean(list)...)
		e.addFact("requirements", "of the package: "+strings.Join(list, " "), from)
	}
}

// versionVariables maps build tools to the environment variable that replaces the version they would read from git.
var versionVariables = parsePairs(`setuptools-scm SETUPTOOLS_SCM_PRETEND_VERSION hatch-vcs SETUPTOOLS_SCM_PRETEND_VERSION
	flit-scm SETUPTOOLS_SCM_PRETEND_VERSION vcs-versioning SETUPTOOLS_SCM_PRETEND_VERSION pbr PBR_VERSION pdm-backend PDM_BUILD_SCM_VERSION
	poetry-dynamic-versioning POETRY_DYNAMIC_VERSIONING_BYPASS uv-dynamic-versioning UV_DYNAMIC_VERSIONING_BYPASS`)

// readVersioning finds out whether the version comes from git, and to which file the build writes it.
func (e *evidence) readVersioning(build, tool table) {
	for _, r := range build.list("requires") {
		e.buildTools = append(e.buildTools, distribution(r))
		if name := distribution(r); name != "pdm-backend" && versionVariables[name] != "" {
			e.addVersionTool(name, pyproject+": build-system.requires")
		}
	}
	if tool.at("pdm", "version").text("source") == "scm" {
		e.addVersionTool("pdm-backend", pyproject+": tool.pdm.version")
	}
	for _, place := range []struct {
		t   table
		key string
	}{
		{tool.at("setuptools_scm"), "version_file"}, {tool.at("setuptools_scm"), "write_to"},
		{tool.at("hatch", "build", "hooks", "vcs"), "version-file"}, {tool.at("pdm", "version"), "write_to"},
	} {
		if file := place.t.text(place.key); file != "" {
			e.versionFile = file
		}
	}
}

func (e *evidence) addVersionTool(tool, from string) {
	e.versionTools = append(e.versionTools, tool)
	e.addFact("version", "from git, by "+tool, from)
}

// addKnown records the requirements of an extra or group. Plans may leave out those that are not meant for tests.
func (e *evidence) addKnown(name string, list []string) {
	list = e.clean(list)
	e.known = append(e.known, list...)
	if !slices.Contains(testNames, name) {
		e.optional = append(e.optional, list...)
	}
}

// lists returns the lists of a table, of which it takes the strings.
func (t table) lists() map[string][]string {
	out := map[string][]string{}
	for name := range t {
		out[name] = t.list(name)
	}
	return out
}

// readExtras records the extras for tests, and the requirements of the extras for developers.
func (e *evidence) readExtras(extras map[string][]string, from string) {
	e.readSets(extras, func(name string) requirementSet { return requirementSet{from: from, extra: name} },
		func(name string) []string { return extras[name] })
}

// readGroups records the dependency groups for tests, and the requirements of the groups for developers.
func (e *evidence) readGroups(groups table, from string) {
	e.readSets(groups.lists(), func(name string) requirementSet { return requirementSet{from: from, group: name} },
		func(name string) []string { return groupMembers(groups, name, nil) })
}

// readSets records named sets of requirements. Those for developers are not installed by name, but as the list that
// members returns.
func (e *evidence) readSets(sets map[string][]string, named func(string) requirementSet, members func(string) []string) {
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		e.addKnown(name, sets[name])
	}
	for rank, names := range [][]string{testNames, devNames} {
		for _, name := range names {
			if _, found := sets[name]; !found {
				continue
			}
			s := named(name)
			if rank == rankDev {
				s = requirementSet{from: s.from, listed: members(name)}
			}
			s.rank = rank
			e.addRequirements(s)
		}
	}
}

// groupMembers returns the requirements of a group and of the groups that it includes. ancestors are the groups that
// include this one; they are not included again.
func groupMembers(groups table, name string, ancestors []string) []string {
	if slices.Contains(ancestors, name) {
		return nil
	}
	out := groups.list(name)
	values, _ := groups[name].([]any)
	for _, v := range values {
		if include, ok := v.(map[string]any); ok {
			out = append(out, groupMembers(groups, table(include).text("include-group"), append(ancestors, name))...)
		}
	}
	return out
}

// readManagers reads the tables of Poetry, PDM, Hatch and uv.
func (e *evidence) readManagers(tool table) {
	poetry := tool.at("poetry")
	if python := poetry.at("dependencies").text("python"); python != "" {
		e.requirePython(poetryToPEP440(python), pyproject+": tool.poetry.dependencies.python")
	}
	if v := poetry.text("version"); v != "" && e.version == "" {
		e.version = v
	}
	e.addDependencies(poetry.at("dependencies").poetryRequirements(), pyproject+": tool.poetry.dependencies")
	e.readExtras(poetry.at("extras").lists(), pyproject+": tool.poetry.extras")
	for rank, names := range [][]string{testNames, devNames} {
		for _, name := range names {
			e.addRequirements(requirementSet{from: pyproject + ": tool.poetry.group." + name, rank: rank, listed: poetry.at("group", name, "dependencies").poetryRequirements()})
		}
	}
	e.addRequirements(requirementSet{from: pyproject + ": tool.poetry.dev-dependencies", rank: rankDev, listed: poetry.at("dev-dependencies").poetryRequirements()})
	e.readGroups(tool.at("pdm", "dev-dependencies"), pyproject+": tool.pdm.dev-dependencies")
	e.addRequirements(requirementSet{from: pyproject + ": tool.uv.dev-dependencies", rank: rankDev, listed: tool.at("uv").list("dev-dependencies")})
	for _, name := range []string{"hatch-test", "test", "tests", "default", "dev"} {
		env := tool.at("hatch", "envs", name)
		from := pyproject + ": tool.hatch.envs." + name
		e.addRequirements(requirementSet{from: from, rank: rankTest, listed: append(env.list("dependencies"), env.list("extra-dependencies")...)})
		for _, extra := range env.list("features") {
			e.addRequirements(requirementSet{from: from, rank: rankTest, extra: extra})
		}
	}
}

// poetryToPEP440 translates Poetry's limits of the Python version: PEP 440 does not know its operators ^ and ~.
func poetryToPEP440(text string) string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if v, ok := strings.CutPrefix(part, "^"); ok {
			major, _, _ := strings.Cut(v, ".")
			n, _ := strconv.Atoi(major)
			part = fmt.Sprintf(">=%s,<%d", v, n+1)
		} else if v, ok := strings.CutPrefix(part, "~"); ok && !strings.HasPrefix(v, "=") {
			part = "==" + v + ".*"
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}

// readToxTables reads the configuration of tox as TOML tables, or as a string that holds an INI file.
func (e *evidence) readToxTables(tox table) {
	if ini := tox.text("legacy_tox_ini"); ini != "" {
		e.readToxEnvs(ini, pyproject+": tool.tox.legacy_tox_ini")
	}
	for _, base := range []table{tox.at("env_run_base"), tox.at("env", "test"), tox.at("env", "tests")} {
		from := pyproject + ": tool.tox"
		e.addRequirements(requirementSet{from: from, rank: rankTools, listed: base.list("deps")})
		for _, extra := range base.list("extras") {
			e.addRequirements(requirementSet{from: from, rank: rankTools, extra: extra})
		}
		for _, group := range base.list("dependency_groups") {
			e.addRequirements(requirementSet{from: from, rank: rankTools, group: group})
		}
	}
}
