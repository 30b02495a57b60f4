package house

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// pages returns the texts of the documentation, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(raw)
	}
	return texts
}

var (
	link   = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	path   = regexp.MustCompile("`([a-z.][a-zA-Z0-9_.-]*/[a-zA-Z0-9_./-]*)`")
	target = regexp.MustCompile(`(?m)\bmake ([a-z][a-z0-9-]*)\b`)
)

// Linked files, make targets and paths of the repository that a page names exist. NAME in a path
// stands for any name.
func TestPagesReferToExistingFiles(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || m[1] == "" {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
		for _, m := range path.FindAllStringSubmatch(text, -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if fi, err := os.Stat(top); err != nil || !fi.IsDir() || top == "bin" || top == "out" {
				continue // not a path in the repository
			}
			seen++
			if found, _ := filepath.Glob(strings.ReplaceAll(m[1], "NAME", "*")); len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
		for _, m := range target.FindAllStringSubmatch(strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(text, -1), "\n"), -1) {
			seen++
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s names the target make %s, which does not exist", page, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d references were checked", seen)
	}
}

// docs/README.md links to every page except single decisions and releases.
func TestEveryPageIsInTheIndex(t *testing.T) {
	texts := pages(t)
	index := texts["docs/README.md"]
	for page := range texts {
		inside, ok := strings.CutPrefix(page, "docs/")
		if !ok || inside == "README.md" || strings.HasPrefix(inside, "releases/") || strings.HasPrefix(inside, "decisions/") {
			continue
		}
		if !strings.Contains(index, "]("+inside+")") {
			t.Errorf("docs/README.md does not link to %s", inside)
		}
	}
}

// README.md shows a row of table steps whose columns exist.
func TestReadmeShowsARowOfSteps(t *testing.T) {
	readme := pages(t)["README.md"]
	_, rest, _ := strings.Cut(readme, "```json\n")
	block, _, _ := strings.Cut(rest, "```")
	var row map[string]any
	if err := json.Unmarshal([]byte(block), &row); err != nil || len(row) == 0 {
		t.Fatalf("%v in %s", err, block)
	}
	table, _ := schemas.Table("steps")
	names := map[string]bool{}
	for _, c := range table.Columns {
		names[c.Name] = true
	}
	for name := range row {
		if !names[name] {
			t.Errorf("table steps has no column %s", name)
		}
	}
	if n := strings.Count(readme, "\n"); n > 200 {
		t.Errorf("README.md has %d lines, want at most 200", n)
	}
}

// The package map of ARCHITECTURE.md names every package.
func TestPackageMapIsComplete(t *testing.T) {
	_, rest, _ := strings.Cut(pages(t)["ARCHITECTURE.md"], "\n## Packages\n")
	packageMap, _, _ := strings.Cut(rest, "\n## ")
	for _, p := range packages(t) {
		name := filepath.Base(p.ImportPath)
		if p.ImportPath+"/" != module && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`/|/`+name+`\b`).MatchString(packageMap) {
			t.Errorf("%s is not in the package map of ARCHITECTURE.md", p.ImportPath)
		}
	}
}

// Every direct dependency has a row in the table of docs/internals/dependencies.md.
func TestDependenciesHaveTheirReason(t *testing.T) {
	_, rest, found := strings.Cut(pages(t)["docs/internals/dependencies.md"], "\n| Module | Home |")
	if !found {
		t.Fatal("docs/internals/dependencies.md has no table of modules")
	}
	table, _, _ := strings.Cut(rest, "\n## ")
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^v\d+$`)
	for _, module := range strings.Fields(string(out)) {
		parts := strings.Split(module, "/")
		if version.MatchString(parts[len(parts)-1]) {
			parts = parts[:len(parts)-1]
		}
		name := parts[len(parts)-1]
		if slices.Contains(parts, "aws-sdk-go-v2") {
			name = "aws-sdk-go-v2" // one row for its parts
		}
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(table) {
			t.Errorf("docs/internals/dependencies.md has no row for the dependency %s", module)
		}
	}
}
