package discover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const pyproject = "pyproject.toml"

// testNames are the names of extras, groups and environments for tests, the most telling first.
var (
	testNames = []string{"test", "tests", "testing", "pytest", "unittest", "unittests", "test-dependencies", "hatch-test"}
	devNames  = []string{"dev", "develop", "development", "devel", "ci", "all"}
)

// table is a table of a TOML file whose shape is not known.
type table map[string]any

// at follows keys; a missing table is nil.
func (t table) at(keys ...string) table {
	for _, k := range keys {
		below, _ := t[k].(map[string]any)
		t = below
	}
	return t
}

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

// list returns the texts of a list.
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

// poetry returns a table of poetry's dependencies as requirements, without the versions, which have a syntax of their own.
func (t table) poetry() []string {
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
		e.fact("install", "unreadable: "+err.Error(), pyproject)
		return
	}
	project, tool := doc.at("project"), doc.at("tool")
	build := doc.at("build-system")
	if project != nil || build != nil || tool.at("poetry") != nil || tool.at("flit", "metadata") != nil {
		e.installable(pyproject, build.text("build-backend"))
	}
	e.readProject(project)
	e.readVersioning(build, tool)
	if t := tool.at("pytest", "ini_options"); t != nil {
		e.settings(pyproject+": tool.pytest.ini_options", t.text)
	} else if t := tool.at("pytest"); t != nil {
		e.settings(pyproject+": tool.pytest", t.text)
	}
	e.readGroups(doc.at("dependency-groups"), pyproject+": dependency-groups")
	e.readExtras(project.at("optional-dependencies"), pyproject+": project.optional-dependencies")
	e.readManagers(tool)
	e.readToxTables(tool.at("tox"))
}

func (e *evidence) installable(file, how string) {
	if e.project == "" {
		e.project = file
		if how == "" {
			how = "setuptools"
		}
		e.fact("install", "built with "+how, file)
	}
}

func (e *evidence) readProject(project table) {
	if project == nil {
		return
	}
	e.requires(project.text("requires-python"), pyproject+": project.requires-python")
	e.classified(project.list("classifiers"), pyproject+": project.classifiers")
	e.depends(project.list("dependencies"), pyproject+": project.dependencies")
	if v := project.text("version"); v != "" {
		e.version = v
	}
}

func (e *evidence) depends(list []string, from string) {
	if len(list) > 0 {
		e.dependencies = true
		e.fact("requirements", "of the package: "+strings.Join(list, " "), from)
	}
}

// versionVariables tell tools the version that they would ask git for.
var versionVariables = pairs(`setuptools-scm SETUPTOOLS_SCM_PRETEND_VERSION hatch-vcs SETUPTOOLS_SCM_PRETEND_VERSION
	flit-scm SETUPTOOLS_SCM_PRETEND_VERSION vcs-versioning SETUPTOOLS_SCM_PRETEND_VERSION pbr PBR_VERSION pdm-backend PDM_BUILD_SCM_VERSION
	poetry-dynamic-versioning POETRY_DYNAMIC_VERSIONING_BYPASS uv-dynamic-versioning UV_DYNAMIC_VERSIONING_BYPASS`)

// readVersioning looks for a version that comes from git, and for the file that it is written to.
func (e *evidence) readVersioning(build, tool table) {
	for _, r := range build.list("requires") {
		if name := distribution(r); name != "pdm-backend" && versionVariables[name] != "" {
			e.fromGit(name, pyproject+": build-system.requires")
		}
	}
	if tool.at("pdm", "version").text("source") == "scm" {
		e.fromGit("pdm-backend", pyproject+": tool.pdm.version")
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

func (e *evidence) fromGit(tool, from string) {
	e.versionTools = append(e.versionTools, tool)
	e.fact("version", "from git, by "+tool, from)
}

// readExtras keeps the extras for tests, or else those for developers.
func (e *evidence) readExtras(extras table, from string) {
	for _, name := range slices.Sorted(maps.Keys(extras)) {
		e.known = append(e.known, e.clean(extras.list(name))...)
	}
	for rank, names := range [][]string{testNames, devNames} {
		for _, name := range names {
			if _, found := extras[name]; !found {
				continue
			}
			s := set{from: from, rank: rank, extra: name}
			if rank == rankDev {
				s.extra, s.listed = "", extras.list(name)
			}
			e.add(s)
		}
	}
}

// readGroups keeps dependency groups; those for developers are listed without their tools.
func (e *evidence) readGroups(groups table, from string) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		e.known = append(e.known, e.clean(groups.list(name))...)
	}
	for rank, names := range [][]string{testNames, devNames} {
		for _, name := range names {
			if _, found := groups[name]; !found {
				continue
			}
			s := set{from: from, rank: rank, group: name}
			if rank == rankDev {
				s.group, s.listed = "", members(groups, name, nil)
			}
			e.add(s)
		}
	}
}

// members returns the requirements of a group and of the groups that it includes.
func members(groups table, name string, above []string) []string {
	if slices.Contains(above, name) {
		return nil
	}
	out := groups.list(name)
	values, _ := groups[name].([]any)
	for _, v := range values {
		if include, ok := v.(map[string]any); ok {
			out = append(out, members(groups, table(include).text("include-group"), append(above, name))...)
		}
	}
	return out
}

// readManagers reads the sections of poetry, pdm, hatch and uv.
func (e *evidence) readManagers(tool table) {
	poetry := tool.at("poetry")
	if python := poetry.at("dependencies").text("python"); python != "" {
		e.requires(caret(python), pyproject+": tool.poetry.dependencies.python")
	}
	if v := poetry.text("version"); v != "" && e.version == "" {
		e.version = v
	}
	e.depends(poetry.at("dependencies").poetry(), pyproject+": tool.poetry.dependencies")
	e.readExtras(poetry.at("extras"), pyproject+": tool.poetry.extras")
	for rank, names := range [][]string{testNames, devNames} {
		for _, name := range names {
			e.add(set{from: pyproject + ": tool.poetry.group." + name, rank: rank, listed: poetry.at("group", name, "dependencies").poetry()})
		}
	}
	e.add(set{from: pyproject + ": tool.poetry.dev-dependencies", rank: rankDev, listed: poetry.at("dev-dependencies").poetry()})
	e.readGroups(tool.at("pdm", "dev-dependencies"), pyproject+": tool.pdm.dev-dependencies")
	e.add(set{from: pyproject + ": tool.uv.dev-dependencies", rank: rankDev, listed: tool.at("uv").list("dev-dependencies")})
	for _, name := range []string{"hatch-test", "test", "tests", "default", "dev"} {
		env := tool.at("hatch", "envs", name)
		from := pyproject + ": tool.hatch.envs." + name
		e.add(set{from: from, rank: rankTest, listed: append(env.list("dependencies"), env.list("extra-dependencies")...)})
		for _, extra := range env.list("features") {
			e.add(set{from: from, rank: rankTest, extra: extra})
		}
	}
}

// caret translates the version operators of poetry that PEP 440 lacks.
func caret(text string) string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if v, ok := strings.CutPrefix(part, "^"); ok {
			part = ">=" + v + ",<4"
		} else if v, ok := strings.CutPrefix(part, "~"); ok && !strings.HasPrefix(v, "=") {
			part = "==" + v + ".*"
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}

// readToxTables reads the TOML form of tox, or the INI file in a text.
func (e *evidence) readToxTables(tox table) {
	if ini := tox.text("legacy_tox_ini"); ini != "" {
		e.tox(ini, pyproject+": tool.tox.legacy_tox_ini")
	}
	for _, base := range []table{tox.at("env_run_base"), tox.at("env", "test"), tox.at("env", "tests")} {
		from := pyproject + ": tool.tox"
		e.add(set{from: from, rank: rankTools, listed: base.list("deps")})
		for _, extra := range base.list("extras") {
			e.add(set{from: from, rank: rankTools, extra: extra})
		}
		for _, group := range base.list("dependency_groups") {
			e.add(set{from: from, rank: rankTools, group: group})
		}
	}
}
