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
	quoted         = regexp.MustCompile(`"([^"\n]*)"|'([^'\n]*)'`)
	pythonRequires = regexp.MustCompile(`python_requires\s*=\s*["']([^"']+)["']`)
	classifier     = regexp.MustCompile(`Programming Language :: Python :: (\d\.\d+)\b`)
	extrasDict     = regexp.MustCompile(`(?s)extras_require\s*=\s*(?:dict\()?\{?(.*)`)
	testsRequire   = regexp.MustCompile(`(?s)tests?_requires?\s*=\s*\[(.*?)\]`)
	installRequire = regexp.MustCompile(`(?s)install_requires\s*=\s*\[(.*?)\]`)
	versionIs      = regexp.MustCompile(`\bversion\s*=\s*["'](\d[^"']*)["']`)
	writesVersion  = regexp.MustCompile(`["']?(?:write_to|version_file)["']?\s*[:=]\s*["']([^"']+\.py)["']`)
	sessionInstall = regexp.MustCompile(`(?s)session\.install\((.*?)\)`)
	pipInstall     = regexp.MustCompile(`\bpip3? install\s+(.*)`)
	extraOfProject = regexp.MustCompile(`^["']?\.\[([A-Za-z0-9_,. -]+)\]["']?$`)
)

// quotedIn returns the string literals of a piece of Python.
func quotedIn(text string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, cmp.Or(m[1], m[2]))
	}
	return out
}

// readSetupPy reads what can be seen without running the file.
func (e *evidence) readSetupPy() {
	const file = "setup.py"
	text := e.text(file)
	if text == "" {
		return
	}
	if strings.Contains(text, "setup(") {
		e.installable(file, "")
	}
	if m := pythonRequires.FindStringSubmatch(text); m != nil {
		e.requires(m[1], file+": python_requires")
	}
	e.classified(quotedIn(text), file+": classifiers")
	if m := installRequire.FindStringSubmatch(text); m != nil {
		e.depends(e.clean(quotedIn(m[1])), file+": install_requires")
	} else if strings.Contains(text, "install_requires") {
		e.dependencies = true
		e.fact("requirements", "of the package: install_requires", file)
	}
	if m := testsRequire.FindStringSubmatch(text); m != nil {
		e.add(set{from: file + ": tests_require", rank: rankTest, listed: quotedIn(m[1])})
	}
	if m := extrasDict.FindStringSubmatch(text); m != nil {
		extras := table{}
		for _, name := range append(testNames, devNames...) {
			if key := regexp.MustCompile(`["']` + regexp.QuoteMeta(name) + `["']\s*:\s*(?s:\[(.*?)\])?`).FindStringSubmatch(m[1]); key != nil {
				var list []any
				for _, r := range quotedIn(key[1]) {
					list = append(list, r)
				}
				extras[name] = list
			}
		}
		e.readExtras(extras, file+": extras_require")
	}
	for _, t := range [][2]string{{"use_scm_version", "setuptools-scm"}, {"pbr=True", "pbr"}} {
		if strings.Contains(text, t[0]) {
			e.fromGit(t[1], file+": "+t[0])
		}
	}
	if m := writesVersion.FindStringSubmatch(text); m != nil {
		e.versionFile = m[1]
	}
	if m := versionIs.FindStringSubmatch(text); m != nil {
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
			e.installed(quotedIn(m[1]), from)
		}
		if strings.Contains(body, "pytest") {
			e.pytest = true
		}
	}
}

// installed keeps the words of an install command.
func (e *evidence) installed(words []string, from string) {
	var listed []string
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], `"'`)
		switch {
		case (word == "-r" || word == "--requirement" || word == "--group") && i+1 < len(words):
			i++
			if next := strings.Trim(words[i], `"'`); word == "--group" {
				e.add(set{from: from, rank: rankTools, group: next})
			} else {
				e.file(path.Clean(next), from, rankTools)
			}
		case strings.HasPrefix(word, "-c"):
			i++
		case strings.HasPrefix(word, "-r"):
			e.file(path.Clean(word[2:]), from, rankTools)
		case extraOfProject.MatchString(word):
			for _, extra := range strings.Split(extraOfProject.FindStringSubmatch(word)[1], ",") {
				if extra = strings.TrimSpace(extra); !linters.MatchString(extra) {
					e.add(set{from: from, rank: rankTools, extra: extra})
				}
			}
		default:
			listed = append(listed, word)
		}
	}
	e.add(set{from: from, rank: rankTools, listed: listed})
}

// readCI reads the commands of GitHub's workflows that install packages or run tests.
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
			if !tests || linters.MatchString(name) {
				continue
			}
			for _, step := range job.Steps {
				for line := range strings.Lines(step.Run) {
					if m := pipInstall.FindStringSubmatch(line); m != nil && !strings.ContainsAny(line, "${}") {
						e.installed(strings.Fields(m[1]), from)
					}
				}
				e.runners(step.Run, from)
			}
		}
	}
}

var requirementsFiles = []struct {
	form *regexp.Regexp
	rank int
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
			if f.form.MatchString(file) && !strings.HasSuffix(strings.TrimSuffix(path.Base(file), path.Ext(file)), "docs") {
				e.file(file, file, f.rank)
				break
			}
		}
	}
	if !e.dependencies {
		for _, file := range []string{"requirements.txt", "requirements.in", "requirements/base.txt", "requirements/requirements.txt"} {
			e.file(file, file, rankTest)
		}
	}
}

var metadataVersion = regexp.MustCompile(`(?m)^Version: (\S+)`)

// readMetadata reads the version that a source distribution has.
func (e *evidence) readMetadata() {
	if m := metadataVersion.FindStringSubmatch(e.text("PKG-INFO")); m != nil {
		e.version = m[1]
	}
}
