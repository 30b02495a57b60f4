package schemas

import (
	"path"
	"strings"
)

// IsTest reports whether a slash-separated path is a test or configures the running of tests.
func IsTest(file string) bool {
	if IsTestModule(file) || IsTestConfig(file) {
		return true
	}
	for dir := range strings.SplitSeq(path.Dir(file), "/") {
		if dir == "test" || dir == "tests" || dir == "testing" {
			return true
		}
	}
	return false
}

// IsTestModule reports whether a test runner collects the file by its name.
func IsTestModule(file string) bool {
	base := path.Base(file)
	return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py")
}

// IsTestConfig reports whether a path is configuration of a test runner or of
// continuous integration.
func IsTestConfig(file string) bool {
	switch path.Base(file) {
	case "conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", ".coveragerc",
		".travis.yml", ".gitlab-ci.yml", "azure-pipelines.yml", "appveyor.yml", ".cirrus.yml":
		return true
	}
	return strings.HasPrefix(file, ".github/workflows/") || strings.HasPrefix(file, ".circleci/")
}
