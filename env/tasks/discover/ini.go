package discover

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// readINI reads a file as Python's configparser does; nil if it cannot be read.
func readINI(text string) *ini.File {
	f, err := ini.LoadSources(ini.LoadOptions{
		AllowPythonMultilineValues: true, SkipUnrecognizableLines: true, IgnoreInlineComment: true,
		AllowBooleanKeys: true, IgnoreContinuation: true, PreserveSurroundedQuote: true, UnescapeValueDoubleQuotes: false,
	}, []byte(text))
	if err != nil {
		return nil
	}
	return f
}

// lines returns the lines of a value without blank ones and comments.
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

// requirementsIn splits the value of a list of requirements.
func requirementsIn(value string) []string {
	var out []string
	for _, line := range lines(value) {
		if !strings.Contains(line, ";") && distribution(line) == "" {
			out = append(out, strings.Split(line, ";")...)
			continue
		}
		out = append(out, line)
	}
	return out
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
		e.installable(file, "")
	}
	e.requires(options.Key("python_requires").String(), file+": options.python_requires")
	e.classified(lines(f.Section("metadata").Key("classifiers").String()), file+": metadata.classifiers")
	e.depends(requirementsIn(options.Key("install_requires").String()), file+": options.install_requires")
	e.add(set{from: file + ": options.tests_require", rank: rankTest, listed: requirementsIn(options.Key("tests_require").String())})
	extras := table{}
	for _, key := range f.Section("options.extras_require").Keys() {
		var list []any
		for _, r := range requirementsIn(key.String()) {
			list = append(list, r)
		}
		extras[key.Name()] = list
	}
	e.readExtras(extras, file+": options.extras_require")
	for _, r := range requirementsIn(options.Key("setup_requires").String()) {
		if name := distribution(r); versionVariables[name] != "" {
			e.fromGit(name, file+": options.setup_requires")
		}
	}
	if s, err := f.GetSection("tool:pytest"); err == nil {
		e.settings(file+": tool:pytest", func(key string) string { return s.Key(key).String() })
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
			e.settings(file+": pytest", func(key string) string { return s.Key(key).String() })
		}
	}
}

func (e *evidence) readTox() {
	if text := e.text("tox.ini"); text != "" {
		e.pytestSection(text, "tox.ini")
		e.tox(text, "tox.ini")
	}
}

// condition is a prefix that limits a line of tox to some environments.
var condition = regexp.MustCompile(`^([A-Za-z0-9_.{},!-]+)\s*:\s+(.*)$`)

// linters are environments of tox and sessions of nox that run no tests.
var linters = regexp.MustCompile(`(?i)lint|docs?\b|format|style|mypy|typ(e|ing)|flake|black|build|release|publish|coverage|pre-?commit|bench|check`)

// tox reads the environments that run tests.
func (e *evidence) tox(text, from string) {
	f := readINI(text)
	if f == nil {
		return
	}
	for _, s := range f.Sections() {
		name, isEnv := strings.CutPrefix(s.Name(), "testenv")
		if !isEnv || linters.MatchString(name) || name != "" && !strings.Contains(name, "py") && !strings.Contains(name, "test") {
			continue
		}
		place := from + ": " + s.Name()
		var listed []string
		for _, line := range lines(s.Key("deps").String()) {
			if m := condition.FindStringSubmatch(line); m != nil {
				if linters.MatchString(m[1]) || strings.HasPrefix(m[1], "py") {
					continue
				}
				line = m[2]
			}
			if file, ok := strings.CutPrefix(line, "-r"); ok {
				e.file(path.Clean(strings.TrimPrefix(strings.TrimSpace(file), "{toxinidir}/")), place, rankTools)
			} else {
				listed = append(listed, line)
			}
		}
		e.add(set{from: place, rank: rankTools, listed: listed})
		for _, key := range []string{"extras", "dependency_groups"} {
			for _, word := range strings.FieldsFunc(strings.Join(lines(s.Key(key).String()), ","), func(r rune) bool { return r == ',' || r == ' ' }) {
				if strings.ContainsAny(word, "{}:") || linters.MatchString(word) {
					continue
				}
				if key == "extras" {
					e.add(set{from: place, rank: rankTools, extra: word})
				} else {
					e.add(set{from: place, rank: rankTools, group: word})
				}
			}
		}
		e.runners(s.Key("commands").String(), place)
	}
}

// runners notes which test runner commands call.
func (e *evidence) runners(commands, from string) {
	for _, line := range lines(commands) {
		if strings.Contains(line, "pytest") || strings.Contains(line, "py.test") {
			e.pytest = true
			e.fact("options", line, from)
		} else if strings.Contains(line, "-m unittest") {
			e.fact("options", line, from)
		}
	}
}

// file keeps a requirements file that exists.
func (e *evidence) file(name, from string, rank int) {
	if _, found := slices.BinarySearch(e.paths, name); found {
		e.add(set{from: from, rank: rank, file: name})
	}
}
