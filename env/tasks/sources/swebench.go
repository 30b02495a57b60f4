package sources

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// sweBenchURL is the address of SWE-bench's rows at a fixed revision.
const sweBenchURL = "https://huggingface.co/datasets/SWE-bench/SWE-bench_Verified/resolve/" +
	"99450355ca8c611021187a57ffac304b66666738/data/test-00000-of-00001.parquet"

func init() {
	for kind, summary := range map[string]string{
		"swebench":       "SWE-bench (Verified, Lite, full): real issues, verified by hidden tests",
		"swebench-debug": "SWE-bench with its tests in the repository, so that agents can run and debug the failure",
	} {
		register(kind, summary, nil, func(cfg DatasetConfig) (env.Source, error) {
			b := sweBench{debug: kind == "swebench-debug"}
			return &datasetSource{name: kind, cfg: cfg, url: sweBenchURL, make: b.instance,
				version: func(r *row) string { return r.optionalText("version") }}, nil
		})
	}
}

//go:embed swebench.yaml
var sweBenchTable []byte

// testRule says how to run the tests of one repository.
type testRule struct {
	Repo     string   `yaml:"repo"`
	License  string   `yaml:"license"`
	IDs      string   `yaml:"ids"`
	Versions []string `yaml:"versions"` // empty = all others
	Command  string   `yaml:"command"`
}

var sweBenchRules = sync.OnceValue(func() (rules []testRule) {
	if err := yaml.Unmarshal(sweBenchTable, &rules); err != nil {
		panic(err) // the table is embedded in the program
	}
	return rules
})

// ruleFor returns the rule of a repository. Repositories without a rule run pytest.
func ruleFor(repo, version string) testRule {
	for _, r := range sweBenchRules() {
		if r.Repo == repo && (len(r.Versions) == 0 || slices.Contains(r.Versions, version)) {
			return r
		}
	}
	return testRule{Repo: repo, IDs: "pytest", Command: "python -m pytest -q"}
}

type sweBench struct{ debug bool }

// instance makes a task from a row (instance_id, repo, base_commit, patch, test_patch, problem_statement, version,
// created_at, FAIL_TO_PASS, PASS_TO_PASS).
func (b sweBench) instance(r *row) instance {
	id, repo, commit := r.text("instance_id"), r.text("repo"), r.text("base_commit")
	tests, version := r.text("test_patch"), r.optionalText("version")
	rule := ruleFor(repo, version)
	t := schemas.Task{
		InstanceID: id, Repo: repo, BaseCommit: commit, License: rule.License,
		Instructions: r.text("problem_statement"), GoldPatch: r.text("patch"),
		Image:  "swebench/sweb.eval.x86_64." + strings.ReplaceAll(strings.ToLower(id), "__", "_1776_") + ":latest",
		Origin: &schemas.Origin{UpstreamRepo: "github.com/" + repo, License: rule.License, BaseCommit: commit},
	}
	if s := r.optionalText("created_at"); s != "" {
		t.CreatedAt, _ = time.Parse(time.RFC3339, s) // optional: some releases have another format
	}
	t.Tests = schemas.TestSpec{Method: schemas.VerifyPytest, Patch: tests, XFailPasses: true,
		FailToPass: r.list("FAIL_TO_PASS"), PassToPass: r.list("PASS_TO_PASS")}
	if len(t.Tests.FailToPass) == 0 && len(r.problems) == 0 {
		r.problem(`column "FAIL_TO_PASS" is empty`)
	}
	t.Tests.FailToPass, t.Tests.PassToPass = withoutDuplicates(t.Tests.FailToPass, t.Tests.PassToPass)
	t.Tests.Files = append(taskfile.DefaultTestFiles(), "**/tests/**")
	in := instance{task: t, repo: repo, commit: commit, conda: true}
	if rule.IDs == "django" {
		in.task.Tests.Method = schemas.VerifyUnittest
		in.djangoIDs()
	}
	all, existing, err := testFiles(tests, slices.Concat(in.task.Tests.FailToPass, in.task.Tests.PassToPass))
	if err != nil {
		r.problem(`column "test_patch": %v`, err)
	}
	in.task.Tests.Command = rule.run(all)
	in.task.Entrypoint = rule.run(existing)
	if b.debug {
		in.task.Entrypoint, in.task.Tests.Command, in.task.Tests.Patch = in.task.Tests.Command, "", ""
		in.change = func(t *workspace.Tree) (*workspace.Tree, error) { return taskfile.Apply(t, []byte(tests)) }
	}
	return in
}

// run returns the command that runs the tests in some files.
func (r testRule) run(files []string) string {
	words := []string{r.Command}
	for _, f := range files {
		if r.IDs == "django" {
			f = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(f, "tests/"), ".py"), "/", ".")
		}
		words = append(words, f)
	}
	return strings.Join(words, " ")
}

// testFiles returns the test modules that a test patch changes or that ids name. existing are those that the repository
// contains before the patch.
func testFiles(patch string, ids []string) (all, existing []string, err error) {
	parsed, _, err := gitdiff.Parse(bytes.NewReader([]byte(patch)))
	if err != nil {
		return nil, nil, fmt.Errorf("not a unified diff: %w", err)
	}
	files, added := map[string]bool{}, map[string]bool{}
	for _, f := range parsed {
		if !f.IsDelete && testModule.MatchString(path.Base(f.NewName)) {
			files[f.NewName] = true
		}
		added[f.NewName] = f.IsNew
	}
	for _, id := range ids {
		if file, _, ok := strings.Cut(id, "::"); ok && strings.HasSuffix(file, ".py") {
			files[file] = true
		}
	}
	for _, f := range sortedKeys(files) {
		all = append(all, f)
		if !added[f] {
			existing = append(existing, f)
		}
	}
	return all, existing, nil
}

var testModule = regexp.MustCompile(`^(test.*|.*_tests?)\.py$`)

// djangoIDs converts ids of the form "test_x (module.Class)" to unittest ids. Any other id is the first line of a
// docstring, from the log of the runner; the verifier finds the tests with that docstring.
func (in *instance) djangoIDs() {
	convert := func(ids []string) (out []string) {
		for _, id := range ids {
			m := djangoID.FindStringSubmatch(id)
			if m == nil {
				out = append(out, strings.TrimSpace(id))
				continue
			}
			class := strings.TrimSuffix(m[2], "."+m[1])
			out = append(out, class+"."+m[1])
		}
		return out
	}
	in.task.Tests.FailToPass, in.task.Tests.PassToPass = convert(in.task.Tests.FailToPass), convert(in.task.Tests.PassToPass)
	in.task.Tests.FailToPass, in.task.Tests.PassToPass = withoutDuplicates(in.task.Tests.FailToPass, in.task.Tests.PassToPass)
}

var djangoID = regexp.MustCompile(`^(\w+) \(([\w.]+)\)$`)

// withoutDuplicates removes duplicates from both lists, and the ids of the first list from the second. The lists of
// some instances contain such ids.
func withoutDuplicates(first, second []string) (a, b []string) {
	seen := map[string]bool{}
	for _, id := range first {
		if !seen[id] {
			a = append(a, id)
		}
		seen[id] = true
	}
	for _, id := range second {
		if !seen[id] {
			b = append(b, id)
		}
		seen[id] = true
	}
	return a, b
}
