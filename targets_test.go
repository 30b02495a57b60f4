package house

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notInCI are the targets with tests that only make full makes, and why.
var notInCI = map[string]string{
	"s3-second": "a second S3 server, whose last version is old and starts slowly",
}

// targetsOfCI are the targets that .ci/run makes.
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

// .ci/run makes every target of the Makefile that runs tests.
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
		why, left := notInCI[target]
		if inCI := slices.Contains(made, target); inCI == left {
			t.Errorf("%s has tests; .ci/run makes it: %v; left out on purpose: %v (%s)", target, inCI, left, why)
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
