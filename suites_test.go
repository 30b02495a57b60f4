package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// `.ci/run` runs the suite under the race detector alone: each test that is built
// without it only is named in the Makefile, which runs it after that, and no other
// file of tests is left out of a build.
func TestNothingIsLeftOut(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` := (.+)$`).FindSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile sets no %s", name)
		}
		return strings.ReplaceAll(string(m[1]), "$$", "$")
	}
	packages := strings.Fields(variable("MEMORY_PACKAGES"))
	pattern := regexp.MustCompile(variable("MEMORY_TESTS"))
	out, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-lE", `^//go:build `, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, file := range strings.Fields(string(out)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "//go:build !race\n") {
			t.Errorf("%s is built on a condition that .ci/run does not know", file)
		}
		dir := "./" + filepath.Dir(file)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if held[dir] = pattern.MatchString(m[1]); !held[dir] {
				t.Errorf("%s: MEMORY_TESTS of the Makefile does not match %s", file, m[1])
			}
		}
	}
	for _, dir := range packages {
		if !held[dir] {
			t.Errorf("MEMORY_PACKAGES of the Makefile names %s, which bounds no memory", dir)
		}
		delete(held, dir)
	}
	for dir := range held {
		t.Errorf("MEMORY_PACKAGES of the Makefile does not name %s", dir)
	}
}
