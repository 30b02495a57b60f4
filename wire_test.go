package house

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// docs/wire.md lists differences between model servers. Each row names tests that exist, unless
// its second column says that tracesmith does nothing about the difference ("not here").
func TestEveryRowOfWireMDHasItsTest(t *testing.T) {
	page, err := os.ReadFile("docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-hoE", `^func Test\w+\(`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		defined[strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "func "), "(")] = true
	}
	row := regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$`)
	named := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(page)) {
		m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || m[1] == "Row" || m[1] == "---" {
			continue
		}
		rows++
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(m[3], -1)
		if len(tests) == 0 && !strings.HasPrefix(m[2], "not here") {
			t.Errorf("docs/wire.md: %s has no test", m[1])
		}
		for _, name := range tests {
			named[name[1]] = true
			if !defined[name[1]] {
				t.Errorf("docs/wire.md: %s: there is no test %s", m[1], name[1])
			}
		}
	}
	if rows < 24 {
		t.Errorf("docs/wire.md has %d rows, want 24 at least", rows)
	}
	for name := range defined {
		if strings.HasPrefix(name, "TestWire") && !named[name] {
			t.Errorf("docs/wire.md does not name %s", name)
		}
	}
}
