package discover

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	stringLiteral   = regexp.MustCompile(`"([^"\n]*)"|'([^'\n]*)'`)
	pythonRequires  = regexp.MustCompile(`python_requires\s*=\s*["']([^"']+)["']`)
	classifier      = regexp.MustCompile(`Programming Language :: Python :: (\d\.\d+)\b`)
	extrasDict      = regexp.MustCompile(`(?s)extras_require\s*=\s*(?:dict\()?\{?(.*)`)
	testsRequire    = regexp.MustCompile(`(?s)tests?_requires?\s*=\s*\[(.*?)\]`)
	installRequire  = regexp.MustCompile(`(?s)install_requires\s*=\s*\[(.*?)\]`)
	versionArgument = regexp.MustCompile(`\bversion\s*=\s*["'](\d[^"']*)["']`)
	writesVersion   = regexp.MustCompile(`["']?(?:write_to|version_file)["']?\s*[:=]\s*["']([^"']+\.py)["']`)
	sessionInstall  = regexp.MustCompile(`(?s)session\.install\((.*?)\)`)
	pipInstall      = regexp.MustCompile(`\bpip3? install\s+(.*)`)
	packageRoot     = regexp.MustCompile(`package_dir\s*=\s*(?:\{\s*["']{2}\s*:|dict\(\s*\[?\(["']{2}\s*,)\s*["']([^"']+)["']`)
	extraOfProject  = regexp.MustCompile(`^["']?\.\[([A-Za-z0-9_,. -]+)\]["']?$`)
)

// stringLiterals returns the values of the string literals in Python code.
func stringLiterals(text string) []string {
	var out []string
	for _, m := range stringLiteral.FindAllStringSubmatch(text, -1) {
		out = append(out, cmp.Or(m[1], m[2]))
	}
	return out
}

// readSetupPy reads the arguments of setup as text. It does not run the file.
func (e *evidence) readSetupPy() {
	const file = "setup.py"
	text := e.text(file)
	if text == "" {
		return
	}
	if strings.Contains(text, "setup(") {
		e.setProject(file, "")
	}
	if m := pythonRequires.FindStringSubmatch(text); m != nil {
		e.requirePython(m[1], file+": python_requires")
	}
	e.addClassifiers(stringLiterals(text), file+": classifiers")
	if m := installRequire.FindStringSubmatch(text); m != nil {
		e.addDependencies(e.clean(stringLiterals(m[1])), file+": install_requires")
	} else if strings.Contains(text, "install_requires") {
		e.dependencies = true
		e.addFact("requirements", "of the package: install_requires", file)
	}
	if m := testsRequire.FindStringSubmatch(text); m != nil {
		e.addRequirements(requirementSet{from: file + ": tests_require", rank: rankTest, listed: stringLiterals(m[1])})
	}
	if m := extrasDict.FindStringSubmatch(text); m != nil {
		extras := map[string][]string{}
		for _, name := range append(testNames, devNames...) {
			if key := regexp.MustCompile(`["']` + regexp.QuoteMeta(name) + `["']\s*:\s*(?s:\[(.*?)\])?`).FindStringSubmatch(m[1]); key != nil {
				extras[name] = stringLiterals(key[1])
			}
		}
		e.readExtras(extras, file+": extras_require")
	}
	for _, t := range [][2]string{{"use_scm_version", "setuptools-scm"}, {"pbr=True", "pbr"}} {
		if strings.Contains(text, t[0]) {
			e.addVersionTool(t[1], file+": "+t[0])
		}
	}
	if m := packageRoot.FindStringSubmatch(text); m != nil {
		e.addRoot(m[1])
	}
	if m := writesVersion.FindStringSubmatch(text); m != nil {
		e.versionFile = m[1]
	}
	if m := versionArgument.FindStringSubmatch(text); m != nil {
		e.version = cmp.Or(e.version, m[1])
	}
}

func (e *evidence) readNox() {
	text := e.text("noxfile.py")
	for _, session := range strings.Split(text, "@nox.session") {
		_, body, _ := strings.Cut(session, "def ")
		name, _, _ := strings.Cut(body, "(")
		if !strings.Contains(name, "test") {
			continue
		}
		from := "noxfile.py: session " + name
		for _, m := range sessionInstall.FindAllStringSubmatch(body, -1) {
			e.readInstall(stringLiterals(m[1]), from)
		}
		if strings.Contains(body, "pytest") {
			e.pytest = true
		}
	}
}

// readInstall records the requirements among the arguments of an install command.
func (e *evidence) readInstall(words []string, from string) {
	var listed []string
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], `"'`)
		switch {
		case (word == "-r" || word == "--requirement" || word == "--group") && i+1 < len(words):
			i++
			if next := strings.Trim(words[i], `"'`); word == "--group" {
				e.addRequirements(requirementSet{from: from, rank: rankTools, group: next})
			} else {
				e.addFile(path.Clean(next), from, rankTools)
			}
		case strings.HasPrefix(word, "-c"):
			i++
		case strings.HasPrefix(word, "-r"):
			e.addFile(path.Clean(word[2:]), from, rankTools)
		case extraOfProject.MatchString(word):
			for _, extra := range strings.Split(extraOfProject.FindStringSubmatch(word)[1], ",") {
				if extra = strings.TrimSpace(extra); !nonTestNames.MatchString(extra) {
					e.addRequirements(requirementSet{from: from, rank: rankTools, extra: extra})
				}
			}
		default:
			listed = append(listed, word)
		}
	}
	e.addRequirements(requirementSet{from: from, rank: rankTools, listed: listed})
}

// readCI reads the commands in GitHub workflows that install packages or run tests.
func (e *evidence) readCI() {
	for _, file := range e.paths {
		if path.Dir(file) != ".github/workflows" || !strings.HasSuffix(file, ".yml") && !strings.HasSuffix(file, ".yaml") {
			continue
		}
		var doc struct {
			Jobs map[string]struct {
				Steps []struct{ Run string }
			}
		}
		if yaml.Unmarshal([]byte(e.text(file)), &doc) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(doc.Jobs)) {
			job, from := doc.Jobs[name], file+": job "+name
			tests := false
			for _, step := range job.Steps {
				tests = tests || strings.Contains(step.Run, "pytest") || strings.Contains(step.Run, "unittest")
			}
			if !tests || nonTestNames.MatchString(name) {
				continue
			}
			for _, step := range job.Steps {
				for line := range strings.Lines(step.Run) {
					if m := pipInstall.FindStringSubmatch(line); m != nil && !strings.ContainsAny(line, "${}") {
						e.readInstall(strings.Fields(m[1]), from)
					}
				}
				e.readCommands(step.Run, from)
			}
		}
	}
}

var requirementsFiles = []struct {
	pattern *regexp.Regexp
	rank    int
}{
	{regexp.MustCompile(`^(?:requirements[-_./])?(?:tests?|testing)[-_/]?(?:requirements)?\.(?:txt|in)$`), rankTest},
	{regexp.MustCompile(`^requirements[-_.](?:tests?|testing)\.(?:txt|in)$`), rankTest},
	{regexp.MustCompile(`^(?:tests?|requirements|reqs|ci|\.github)/(?:requirements[-_.]?)?(?:tests?|testing)?(?:[-_.]requirements)?\.(?:txt|in)$`), rankTest},
	{regexp.MustCompile(`^(?:requirements[-_./])?(?:dev|develop|development|ci)(?:[-_]requirements)?\.(?:txt|in)$`), rankDev},
}

// readRequirements finds requirements files by their names.
func (e *evidence) readRequirements() {
	for _, file := range e.paths {
		for _, f := range requirementsFiles {
			if f.pattern.MatchString(file) && !strings.HasSuffix(strings.TrimSuffix(path.Base(file), path.Ext(file)), "docs") {
				e.addFile(file, file, f.rank)
				break
			}
		}
	}
	if !e.dependencies {
		for _, file := range []string{"requirements.txt", "requirements.in", "requirements/base.txt", "requirements/requirements.txt"} {
			e.addFile(file, file, rankTest)
		}
	}
}

var (
	metadataVersion = regexp.MustCompile(`(?m)^Version: (\S+)`)
	metadataPython  = regexp.MustCompile(`(?m)^Requires-Python: (.+)`)
	metadataNeeds   = regexp.MustCompile(`(?m)^Requires-Dist: ([^;\n]+)(;.*)?$`)
	markerExtra     = regexp.MustCompile(`extra\s*==\s*["']([^"']+)["']`)
)

// readMetadata reads the metadata of a source distribution, which its build has computed.
func (e *evidence) readMetadata() {
	const file = "PKG-INFO"
	text, _, _ := strings.Cut(e.text(file), "\n\n") // the description follows
	if m := metadataVersion.FindStringSubmatch(text); m != nil {
		e.version = m[1]
	}
	if m := metadataPython.FindStringSubmatch(text); m != nil && len(e.python) == 0 {
		e.requirePython(m[1], file+": Requires-Python")
	}
	var listed []string
	extras := map[string][]string{}
	for _, m := range metadataNeeds.FindAllStringSubmatch(text, -1) {
		r := strings.TrimSpace(m[1])
		if extra := markerExtra.FindStringSubmatch(m[2]); extra != nil {
			extras[extra[1]] = append(extras[extra[1]], r)
		} else {
			listed = append(listed, r)
		}
	}
	if !e.dependencies {
		e.addDependencies(listed, file+": Requires-Dist")
	}
	if !slices.ContainsFunc(e.sets, func(s requirementSet) bool { return s.extra != "" }) {
		e.readExtras(extras, file+": Requires-Dist")
	}
}
