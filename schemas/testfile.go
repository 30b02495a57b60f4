package schemas

import (
	"path"
	"strings"
)

// IsTest tells whether a slash-separated path is a test or decides which tests run and how.
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

// IsTestModule tells whether a test runner collects a file by its name.
func IsTestModule(file string) bool {
	base := path.Base(file)
	return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py")
}

// IsTestConfig tells whether a path is configuration of a test runner or of
// continuous integration.
func IsTestConfig(file string) bool {
	switch path.Base(file) {
	case "conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", ".coveragerc",
		".travis.yml", ".gitlab-ci.yml", "azure-pipelines.yml", "appveyor.yml", ".cirrus.yml":
		return true
	}
	return strings.HasPrefix(file, ".github/workflows/") || strings.HasPrefix(file, ".circleci/")
}
