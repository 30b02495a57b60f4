package sources

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	const summary = "R2E-Gym: commits of real repositories with generated tests; a fix must give the expected result of every test"
	register("r2egym", summary, nil, func(cfg DatasetConfig) (env.Source, error) {
		return &datasetSource{name: "r2egym", cfg: cfg, make: r2eGym, ids: r2eID,
			url: "https://huggingface.co/datasets/R2E-Gym/R2E-Gym-Lite/resolve/" +
				"8d3163011f01f9393bb3dc7700497a79a8686ae5/data/train-00000-of-00001.parquet"}, nil
	})
}

// r2eID converts an id of the benchmark, name:commit, to name-commit.
func r2eID(id string) string { return strings.ReplaceAll(id, ":", "-") }

// r2eCommit has the fields of parsed_commit_content that are used.
type r2eCommit struct {
	Old   string `json:"old_commit_hash"`
	Files []struct {
		Header struct {
			File struct {
				Path string `json:"path"`
			} `json:"file"`
		} `json:"header"`
		Old string `json:"old_file_content"`
		New string `json:"new_file_content"`
	} `json:"file_diffs"`
}

// r2eTests has the fields of execution_result_content that are used.
type r2eTests struct {
	Codes []string `json:"test_file_codes"`
	Names []string `json:"test_file_names"`
}

var (
	ansiColor = regexp.MustCompile("\x1b\\[[0-9;]*m")
	issueTag  = regexp.MustCompile(`(?s)\[ISSUE\](.*)\[/ISSUE\]`)
)

// r2eGym makes a task from a row (repo_name, docker_image, commit_hash, parsed_commit_content,
// execution_result_content, problem_statement, expected_output_json). The tests are hidden: only the row contains them.
func r2eGym(r *row) instance {
	image, repo := r.text("docker_image"), r.text("repo_name")
	_, id, _ := strings.Cut(image, "/")
	t := schemas.Task{
		InstanceID: r2eID(id), Repo: repo, Image: image, Instructions: r.text("problem_statement"),
		Origin: &schemas.Origin{UpstreamRepo: repo},
	}
	if m := issueTag.FindStringSubmatch(t.Instructions); m != nil {
		t.Instructions = strings.TrimSpace(m[1])
	}
	var parsed r2eCommit
	var tests r2eTests
	if r.object("parsed_commit_content", &parsed) && r.object("execution_result_content", &tests) {
		if len(tests.Codes) == 0 || len(tests.Codes) != len(tests.Names) {
			r.problem(`column "execution_result_content": want as many test_file_names as test_file_codes, there are %d and %d`, len(tests.Names), len(tests.Codes))
		}
		if parsed.Old == "" {
			r.problem(`column "parsed_commit_content" lacks old_commit_hash`)
		}
	}
	t.BaseCommit, t.Origin.BaseCommit = parsed.Old, parsed.Old
	for _, f := range parsed.Files {
		if name := f.Header.File.Path; !strings.Contains(name, "test") {
			t.GoldPatch += fileDiff(name, f.Old, f.New)
		}
	}
	t.Tests = schemas.TestSpec{Method: schemas.VerifyPytest, Expected: r2eExpected(r), Files: []string{"r2e_tests/**"}}
	for i, name := range tests.Names {
		if i < len(tests.Codes) {
			t.Tests.Patch += fileDiff("r2e_tests/"+path.Base(name), "", tests.Codes[i])
		}
	}
	t.Entrypoint = "python -m pytest -q -W ignore"
	t.Tests.Command = "python -m pytest -q -W ignore r2e_tests"
	return instance{task: t, repo: repo, commit: parsed.Old}
}

// r2eExpected returns the expected statuses of the tests, by id.
func r2eExpected(r *row) map[string]string {
	var given map[string]string
	text := r.text("expected_output_json")
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		r.problem(`column "expected_output_json": want the JSON of an object of texts: %v`, err)
		return nil
	}
	out := map[string]string{}
	for id, status := range given {
		id, _, _ = strings.Cut(ansiColor.ReplaceAllString(id, ""), " - ")
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		out[id] = strings.ToLower(status)
	}
	if len(out) == 0 {
		r.problem(`column "expected_output_json" names no test`)
	}
	return out
}

// fileDiff returns the git diff of one file. An empty text means that the file does not exist.
func fileDiff(name, before, after string) string {
	if before == after {
		return ""
	}
	head, from, to := "", "a/"+name, "b/"+name
	switch {
	case before == "":
		head, from = "new file mode 100644\n", "/dev/null"
	case after == "":
		head, to = "deleted file mode 100644\n", "/dev/null"
	}
	return fmt.Sprintf("diff --git a/%s b/%s\n%s%s", name, name, head, udiff.Unified(from, to, before, after))
}
