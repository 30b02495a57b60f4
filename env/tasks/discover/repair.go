package discover

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	noModule     = regexp.MustCompile(`No module named ['"]?([A-Za-z_][\w.]*)`)
	unrecognized = regexp.MustCompile(`unrecognized arguments: (.+)`)
	required     = regexp.MustCompile(`Missing required plugins: (.+)`)
	fixture      = regexp.MustCompile(`fixture '(\w+)' not found`)
	unknownKey   = regexp.MustCompile(`Unknown config option: ([\w-]+)`)
	marker       = regexp.MustCompile(`'(\w+)' not found in .mark|Unknown pytest\.mark\.(\w+)`)
	asyncTests   = regexp.MustCompile(`async def functions are not natively supported`)
	minVersion   = regexp.MustCompile(`requires pytest-(\d+\.\d+)`)
	removedAPI   = regexp.MustCompile(`(?m)^E .*PytestRemovedIn(\d+)Warning|Plugin\w+ has no attribute|cannot import name '\w+' from '_pytest|'Package' object has no attribute '(?:session|obj)'`)
	oldSection   = regexp.MustCompile(`\[pytest\] section in setup\.cfg files is no longer supported`)
	noEditable   = regexp.MustCompile(`has no attribute '(?:prepare_metadata_for_)?build_editable'|missing the 'build_editable' hook`)
	notFoundDist = regexp.MustCompile(`(?i)because ([A-Za-z0-9._-]+) was not found in the package registry`)
	noExtra      = regexp.MustCompile(`does not have an extra named .?([\w.-]+)`)
	buildNeeds   = regexp.MustCompile(`ModuleNotFoundError: No module named '(setuptools|pkg_resources|distutils|wheel)'`)
	pluginOfMark = parsePairs(`asyncio pytest-asyncio trio pytest-trio anyio anyio django_db pytest-django timeout pytest-timeout benchmark pytest-benchmark
		flaky pytest-rerunfailures vcr pytest-vcr xdist_group pytest-xdist repeat pytest-repeat order pytest-order dependency pytest-dependency
		forked pytest-forked no_cover pytest-cov remote_data pytest-remotedata mpl_image_compare pytest-mpl enable_socket pytest-socket
		disable_socket pytest-socket allow_hosts pytest-socket datafiles pytest-datafiles httpx_mock pytest-httpx respx respx
		randomly_dont_reset_seed pytest-randomly freeze_time pytest-freezer sphinx sphinx subprocess pytest-subprocess`)
)

// repair changes a plan after an attempt. The returned reason says what changed and why; it is "" if the output does
// not suggest a change.
func (e *evidence) repair(p plan, o outcome) (_ plan, reason string) {
	p = p.clone()
	if o.setupFailed {
		return e.repairSetup(p, o.output)
	}
	if o.foreign != "" {
		if p.first {
			return p, ""
		}
		p.first = true
		return p, "put the checkout first on the module path: " + o.foreign
	}
	var changed []string
	need := func(requirement, because string) {
		if requirement != "" && p.addRequirement(requirement) {
			changed = append(changed, fmt.Sprintf("added %s: %s", requirement, because))
		}
	}
	for _, m := range required.FindAllStringSubmatch(o.output, -1) {
		for _, r := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if distribution(r) != "" {
				need(r, "a required plugin")
			}
		}
	}
	for _, m := range unrecognized.FindAllStringSubmatch(o.output, -1) {
		for _, w := range strings.Fields(m[1]) {
			need(pluginOfOption(w), "it defines "+w)
		}
	}
	for _, m := range fixture.FindAllStringSubmatch(o.output, -1) {
		need(pluginOfFixture[m[1]], "it defines the fixture "+m[1])
	}
	for _, m := range unknownKey.FindAllStringSubmatch(o.output, -1) {
		need(pluginOfSetting[m[1]], "it defines the setting "+m[1])
	}
	for _, m := range marker.FindAllStringSubmatch(o.output, -1) {
		name := m[1] + m[2]
		need(pluginOfMark[name], "it defines the marker "+name)
	}
	if asyncTests.MatchString(o.output) {
		need(e.asyncPlugin(), "tests are async functions")
	}
	for _, m := range noModule.FindAllStringSubmatch(o.output, -1) {
		need(e.provider(m[1]), "it provides the module "+m[1]+", which is missing")
	}
	if m := minVersion.FindStringSubmatch(o.output); m != nil {
		need("pytest>="+m[1], "the settings require it")
	}
	if m := removedAPI.FindStringSubmatch(o.output); m != nil && len(changed) == 0 {
		version := m[1]
		if version == "" {
			version = "9"
			if slices.Contains(p.requirements, "pytest<9") {
				version = "8"
			}
		}
		need("pytest<"+version, "the tests use a feature that pytest "+version+" removed")
	}
	if oldSection.MatchString(o.output) && !slices.Contains(p.options, "--rootdir=.") {
		p.options = append(p.options, "-c", "/dev/null", "--rootdir=.")
		changed = append(changed, "without settings: pytest does not support those of setup.cfg")
	}
	if len(changed) == 0 && len(o.run.Duplicates) > 0 {
		return e.deselect(p, o)
	}
	if len(changed) == 0 {
		return e.narrow(p, o)
	}
	if p.project == importFromRoot && e.project != "" && len(p.requirements) > 0 { // an offline plan becomes one that installs
		p.project = importInstalled
	}
	return p, strings.Join(changed, "; ")
}

// repairSetup changes a plan whose set-up commands failed.
func (e *evidence) repairSetup(p plan, output string) (plan, string) {
	if m := notFoundDist.FindStringSubmatch(output); m != nil {
		name := distribution(m[1])
		if i := slices.IndexFunc(p.requirements, func(r string) bool { return distribution(r) == name }); i >= 0 {
			p.requirements = slices.Delete(p.requirements, i, i+1)
			return p, "left out " + name + ": no registry has it"
		}
	}
	if m := noExtra.FindStringSubmatch(output); m != nil {
		if i := slices.Index(p.extras, m[1]); i >= 0 {
			p.extras = slices.Delete(p.extras, i, i+1)
			return p, "left out the extra " + m[1] + ": the package does not have it"
		}
	}
	if !p.newTools && noEditable.MatchString(output) {
		p.newTools = true
		return p, "with newer build tools: those of that time cannot install in place"
	}
	if p.isolate && buildNeeds.MatchString(output) {
		p.isolate = false
		return p, "built without isolation: the build needs setuptools but does not say so"
	}
	return p, ""
}

// asyncPlugin returns the plugin for async test functions that the imports of the tests suggest.
func (e *evidence) asyncPlugin() string {
	switch {
	case e.imports["trio"] && !e.imports["asyncio"]:
		return "pytest-trio"
	case e.imports["anyio"]:
		return "anyio"
	}
	return "pytest-asyncio"
}

// provider returns a requirement that provides a module, or "" if none is known. Names are never guessed, because anyone
// can register the name of a module: the package is well known, or the repository lists it.
func (e *evidence) provider(module string) string {
	top, _, _ := strings.Cut(module, ".")
	if e.hasModule(top) { // the tests must not import a released copy instead
		return ""
	}
	if d := cmp.Or(distributionOf[module], distributionOf[top]); d != "" {
		return d
	}
	name := separators.ReplaceAllString(strings.ToLower(top), "-")
	known := slices.Concat(e.own, e.known)
	for _, s := range e.sets {
		known = append(known, s.listed...)
	}
	for _, matches := range []func(d string) bool{
		func(d string) bool { return d == name },
		func(d string) bool { return strings.HasPrefix(d, name+"-") || d == "python-"+name },
	} {
		for _, r := range known {
			if matches(distribution(r)) {
				return r
			}
		}
	}
	if wellKnown[name] {
		return name
	}
	if !slices.Contains(e.unknown, top) {
		e.unknown = append(e.unknown, top)
	}
	return ""
}

// hasModule reports whether a module is part of the repository: a package or module in a source directory, or beside
// the tests.
func (e *evidence) hasModule(module string) bool {
	dirs := slices.Concat(sourceRoots, e.roots)
	for _, place := range e.tests {
		dirs = append(dirs, strings.TrimSuffix(place, "/"), path.Dir(place))
	}
	for _, dir := range dirs {
		at := path.Join(dir, module)
		if _, found := slices.BinarySearch(e.paths, at+".py"); found {
			return true
		}
		if i, _ := slices.BinarySearch(e.paths, at+"/"); i < len(e.paths) && strings.HasPrefix(e.paths[i], at+"/") {
			return true
		}
	}
	return false
}

// missingTestModule returns a module that cannot be imported from a package of tests in the checkout, "" if there is none.
func (e *evidence) missingTestModule(output string) string {
	for _, m := range noModule.FindAllStringSubmatch(output, -1) {
		top, _, nested := strings.Cut(m[1], ".")
		file := strings.ReplaceAll(m[1], ".", "/")
		if nested && testDir.MatchString(top) && e.hasModule(top) && !e.hasModule(file) {
			return file + ".py"
		}
	}
	return ""
}

// maxIgnored is the largest share of the test files that a plan may leave out.
const maxIgnored = 0.25

// maxDeselected is the largest number of ids that a plan leaves out.
const maxDeselected = 50

// deselect leaves out the tests whose ids are reported more than once, because no patch can be judged by them.
func (e *evidence) deselect(p plan, o outcome) (plan, string) {
	ids := unique(o.run.Duplicates)
	if p.unittest || len(ids) > maxDeselected || float64(len(ids)) > maxIgnored*float64(len(o.run.Tests)) {
		return p, ""
	}
	for _, id := range ids {
		if option := "--deselect=" + id; !slices.Contains(p.options, option) {
			p.options = append(p.options, option)
		} else {
			return p, ""
		}
	}
	what := "1 test whose id is not unique"
	if len(ids) > 1 {
		what = fmt.Sprintf("%d tests whose ids are not unique", len(ids))
	}
	return p, "left out " + what + ", such as " + ids[0]
}

// leaveOutHanging leaves out a test that did not end, and, if another test of its file was left out before, the file. It
// does this once for each, because every further attempt may take as long as the time limit.
func leaveOutHanging(p plan, id string) (plan, string) {
	p = p.clone()
	file, _, ok := strings.Cut(id, "::")
	switch {
	case !ok || p.unittest || slices.ContainsFunc(p.options, func(o string) bool { return strings.HasPrefix(o, "--ignore=") }):
		return p, ""
	case slices.ContainsFunc(p.options, func(o string) bool { return strings.HasPrefix(o, "--deselect="+file+"::") }):
		p.options = append(p.options, "--ignore="+file)
		return p, "left out " + file + ", whose tests do not end"
	}
	p.options = append(p.options, "--deselect="+id)
	return p, "left out " + id + ", which does not end"
}

// narrow leaves out files that cannot be collected: first all files outside of the directories of tests, then single
// files.
func (e *evidence) narrow(p plan, o outcome) (plan, string) {
	if p.unittest || len(o.uncollected) == 0 {
		return p, ""
	}
	outside := slices.ContainsFunc(o.uncollected, func(file string) bool {
		return !slices.ContainsFunc(e.tests, func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") })
	})
	dirs := slices.DeleteFunc(slices.Clone(e.tests), func(d string) bool { return strings.HasSuffix(d, ".py") })
	if outside && len(dirs) > 0 && len(dirs) <= 3 && !slices.Contains(p.options, dirs[0]) {
		p.options = append(p.options, dirs...)
		return p, "only " + strings.Join(dirs, " ") + ": other files cannot be collected"
	}
	total := 0
	for _, file := range e.paths {
		if isTest(file) && testFile.MatchString(file[strings.LastIndexByte(file, '/')+1:]) {
			total++
		}
	}
	if o.passed == 0 && total <= len(o.uncollected) || float64(len(o.uncollected)) > maxIgnored*float64(total) {
		return p, ""
	}
	for _, file := range o.uncollected {
		if option := "--ignore=" + file; !slices.Contains(p.options, option) && strings.HasSuffix(file, ".py") {
			p.options = append(p.options, option)
		} else {
			return p, ""
		}
	}
	return p, "left out " + strings.Join(o.uncollected, " ") + ", which cannot be collected (" + o.cause + ")"
}
