package discover

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// readINI parses the text of an INI file much as Python's configparser does. Unlike configparser,
// it accepts keys without a value and skips lines that it does not recognize. It returns nil if
// the text cannot be parsed.
func readINI(text string) *ini.File {
	f, err := ini.LoadSources(ini.LoadOptions{
		AllowPythonMultilineValues: true, SkipUnrecognizableLines: true, IgnoreInlineComment: true,
		AllowBooleanKeys: true, IgnoreContinuation: true, PreserveSurroundedQuote: true,
	}, []byte(text))
	if err != nil {
		return nil
	}
	return f
}

// lines returns the lines of a value, without comments and blank lines.
func lines(value string) []string {
	var out []string
	for line := range strings.Lines(value) {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// markerName is a variable of an environment marker, which follows a semicolon.
var markerName = regexp.MustCompile(`;[\s(]*(python_|os_name|sys_platform|platform_|implementation_|extra\b)`)

// requirementsIn returns the requirements in a value of setup.cfg: one from each line, or, in
// a single line, separated by semicolons.
func requirementsIn(value string) []string {
	out := lines(value)
	if len(out) != 1 || markerName.MatchString(out[0]) {
		return out
	}
	out = strings.Split(out[0], ";")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return unique(out)
}

func (e *evidence) readSetupCfg() {
	const file = "setup.cfg"
	text := e.text(file)
	if text == "" {
		return
	}
	f := readINI(text)
	if f == nil {
		return
	}
	options := f.Section("options")
	if f.Section("metadata").HasKey("name") {
		e.setProject(file, "") // setup.cfg cannot declare a build backend
	}
	e.requirePython(options.Key("python_requires").String(), file+": options.python_requires")
	for _, key := range []string{"classifiers", "classifier"} { // setuptools accepts both
		e.addClassifiers(lines(f.Section("metadata").Key(key).String()), file+": metadata."+key)
	}
	e.addDependencies(requirementsIn(options.Key("install_requires").String()), file+": options.install_requires")
	for _, line := range lines(options.Key("package_dir").String()) {
		if name, dir, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "" {
			e.addRoot(strings.TrimSpace(dir))
		}
	}
	e.addRequirements(requirementSet{from: file + ": options.tests_require", rank: rankTest, listed: requirementsIn(options.Key("tests_require").String())})
	extras := map[string][]string{}
	for _, key := range f.Section("options.extras_require").Keys() {
		extras[key.Name()] = requirementsIn(key.String())
	}
	e.readExtras(extras, file+": options.extras_require")
	for _, r := range requirementsIn(options.Key("setup_requires").String()) {
		if name := distribution(r); versionVariables[name] != "" {
			e.addVersionTool(name, file+": options.setup_requires")
		}
	}
	if s, err := f.GetSection("tool:pytest"); err == nil {
		e.readPytestSettings(file+": tool:pytest", func(key string) string { return s.Key(key).String() })
	}
}

func (e *evidence) readPytestFiles() {
	for _, file := range []string{"pytest.ini", ".pytest.ini"} {
		if text := e.text(file); text != "" {
			e.pytestSection(text, file)
		}
	}
}

func (e *evidence) pytestSection(text, file string) {
	if f := readINI(text); f != nil {
		if s, err := f.GetSection("pytest"); err == nil {
			e.readPytestSettings(file+": pytest", func(key string) string { return s.Key(key).String() })
		}
	}
}

func (e *evidence) readTox() {
	if text := e.text("tox.ini"); text != "" {
		e.pytestSection(text, "tox.ini")
		e.readToxEnvs(text, "tox.ini")
	}
}

// toxFactor matches a line of a tox setting that applies only to some environments.
var toxFactor = regexp.MustCompile(`^([A-Za-z0-9_.{},!-]+)\s*:\s+(.*)$`)

// nonTestNames matches the names of tox environments, extras and CI jobs that do not run tests.
var nonTestNames = regexp.MustCompile(`(?i)lint|docs?\b|format|style|mypy|typ(e|ing)|flake|black|build|release|publish|coverage|pre-?commit|bench|check`)

// readToxEnvs reads the environments of tox that run tests.
func (e *evidence) readToxEnvs(text, from string) {
	f := readINI(text)
	if f == nil {
		return
	}
	for _, s := range f.Sections() {
		name, isEnv := strings.CutPrefix(s.Name(), "testenv")
		if !isEnv || nonTestNames.MatchString(name) || name != "" && !strings.Contains(name, "py") && !strings.Contains(name, "test") {
			continue
		}
		place := from + ": " + s.Name()
		var listed []string
		for _, line := range lines(s.Key("deps").String()) {
			if m := toxFactor.FindStringSubmatch(line); m != nil {
				if nonTestNames.MatchString(m[1]) || strings.HasPrefix(m[1], "py") {
					continue
				}
				line = m[2]
			}
			if file, ok := strings.CutPrefix(line, "-r"); ok {
				e.addFile(path.Clean(strings.TrimPrefix(strings.TrimSpace(file), "{toxinidir}/")), place, rankTools)
			} else {
				listed = append(listed, line)
			}
		}
		e.addRequirements(requirementSet{from: place, rank: rankTools, listed: listed})
		for _, key := range []string{"extras", "dependency_groups"} {
			for _, word := range strings.FieldsFunc(strings.Join(lines(s.Key(key).String()), ","), func(r rune) bool { return r == ',' || r == ' ' }) {
				if strings.ContainsAny(word, "{}:") || nonTestNames.MatchString(word) {
					continue
				}
				if key == "extras" {
					e.addRequirements(requirementSet{from: place, rank: rankTools, extra: word})
				} else {
					e.addRequirements(requirementSet{from: place, rank: rankTools, group: word})
				}
			}
		}
		e.readCommands(s.Key("commands").String(), place)
	}
}

// readCommands records the commands that run pytest or unittest, and whether any runs pytest.
func (e *evidence) readCommands(commands, from string) {
	for _, line := range lines(commands) {
		if strings.Contains(line, "pytest") || strings.Contains(line, "py.test") {
			e.pytest = true
			e.addFact("options", line, from)
		} else if strings.Contains(line, "-m unittest") {
			e.addFact("options", line, from)
		}
	}
}

// addFile records a requirements file if it exists.
func (e *evidence) addFile(name, from string, rank int) {
	if _, found := slices.BinarySearch(e.paths, name); found {
		e.known = append(e.known, e.clean(lines(e.text(name)))...)
		e.addRequirements(requirementSet{from: from, rank: rank, file: name})
	}
}
