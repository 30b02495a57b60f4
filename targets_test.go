package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/suite"
)

// notInCI maps each target whose tests only `make full` runs to the reason.
var notInCI = map[string]string{
	"s3-second": "a second S3 server, whose last version is old and starts slowly",
}

// targetsOfCI returns the targets of the Makefile that .ci/run makes.
func targetsOfCI(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, line := range regexp.MustCompile(`(?m)^make (.*)$`).FindAllStringSubmatch(string(text), -1) {
		for _, word := range strings.Fields(line[1]) {
			if !strings.HasPrefix(word, "-") {
				made = append(made, word)
			}
		}
	}
	return made
}

// .ci/run makes every target of the Makefile that runs tests, except those in notInCI.
func TestEverySuiteIsInCI(t *testing.T) {
	made := targetsOfCI(t)
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target, found := "", 0
	for line := range strings.Lines(string(makefile)) {
		if m := regexp.MustCompile(`^([a-z0-9-]+):`).FindStringSubmatch(line); m != nil {
			target = m[1]
		}
		if !strings.HasPrefix(line, "\t") || !strings.Contains(line, "$(call gotest,") {
			continue
		}
		found++
		reason, excluded := notInCI[target]
		if inCI := slices.Contains(made, target); inCI == excluded {
			t.Errorf("%s has tests; .ci/run makes it: %v; notInCI excludes it: %v (%s)", target, inCI, excluded, reason)
		}
	}
	if found < 14 {
		t.Errorf("%d lines with calls of go test found, want at least 14", found)
	}
	for _, want := range []string{"test", "check", "demo"} {
		if !slices.Contains(made, want) {
			t.Errorf(".ci/run does not make %s", want)
		}
	}
}

// Each suite has a target that sets its variable and runs the tests with its prefix. Only the package
// internal/suite reads the variable.
func TestSuitesHaveTargets(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suite.All() {
		_, recipe, _ := strings.Cut(string(makefile), "\n"+s.Target+": ")
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		// A suite may run all tests of its packages, which a variable with the name of the target lists.
		all := s.Variable + "=1 $(call gotest,$(" + strings.ToUpper(s.Target) + "))"
		if !strings.Contains(recipe, all) && (!strings.Contains(recipe, s.Variable) || !strings.Contains(recipe, "-run '"+s.Pattern())) {
			t.Errorf("make %s does not set %s and run '%s'", s.Target, s.Variable, s.Pattern())
		}
		out, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-lF", `"`+s.Variable, "--", "*.go").Output()
		if files := strings.Fields(string(out)); err != nil || !slices.Equal(files, []string{"internal/suite/suite.go"}) {
			t.Errorf("%s is read in %v: only internal/suite may (%v)", s.Variable, files, err)
		}
	}
}

// Scripts that need a real S3 server have names that the target s3 selects.
func TestScriptsWithAnS3ServerHaveTheirPrefix(t *testing.T) {
	files, err := filepath.Glob("cmd/tracesmith/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\[!?s3-server\] `).Match(text) {
			continue
		}
		found++
		if !strings.HasPrefix(filepath.Base(file), "s3") {
			t.Errorf("%s depends on [s3-server]: begin its name with s3, or make s3 does not run it", file)
		}
	}
	if found < 2 {
		t.Errorf("%d scripts need an S3 server, want at least 2", found)
	}
}

// make TARGET runs the scripts that run only in the suite of that target.
func TestTargetsRunTheirScripts(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suite.WithScripts() {
		_, recipe, _ := strings.Cut(string(makefile), "\n"+s.Target+": ")
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		if !regexp.MustCompile(`\./cmd/tracesmith,-run '\^Test\(?Scripts\b\S*/\^` + s.Target + `_?'`).MatchString(recipe) {
			t.Errorf("make %s does not run the scripts whose names begin with it", s.Target)
		}
		if scripts, err := filepath.Glob("cmd/tracesmith/testdata/script/" + s.Target + "*.txtar"); err != nil || len(scripts) == 0 {
			t.Errorf("there are no scripts for make %s", s.Target)
		}
	}
}

// make test builds every test file.
func TestMakeTestBuildsEveryTest(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-hE", `^//go:build `, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if line != "//go:build !race\n" {
			t.Errorf("a test file with the condition %q, under which make test does not build it", line)
		}
	}
}

// Another target runs the packages that make test leaves out.
func TestPackagesApartRunElsewhere(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	left := regexp.MustCompile(`\$\((\w+):\./%=`).FindAllStringSubmatch(string(text), -1)
	if len(left) < 2 {
		t.Errorf("make test leaves out %v", left)
	}
	for _, variable := range left {
		if !strings.Contains(string(text), "$(call gotest,$("+variable[1]+"))") {
			t.Errorf("no target runs the packages in %s, which make test leaves out", variable[1])
		}
	}
}

// .ci/run runs tests with -short. make full makes at least the same targets, without -short.
func TestMakeFullRunsTheLongForms(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^gotest = .* \$\(if \$\(FULL\),,-short\) `).Match(makefile) {
		t.Error("gotest of the Makefile does not pass -short, or passes it with FULL=1")
	}
	full := regexp.MustCompile(`(?m)^\t\$\(MAKE\) FULL=1 (.*)$`).FindSubmatch(makefile)
	if full == nil {
		t.Fatal("make full makes nothing with FULL=1")
	}
	made := strings.Fields(string(full[1]))
	for _, target := range append(targetsOfCI(t), "s3-second") {
		if !slices.Contains(made, target) {
			t.Errorf("make full does not make %s", target)
		}
	}
}
