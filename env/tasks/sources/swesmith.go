package sources

import (
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	defaults := func() DatasetConfig { return DatasetConfig{Exclude: sweSmithExcluded()} }
	register("swesmith", "SWE-smith: generated bugs in real repositories, with tests that agents can run", defaults, func(cfg DatasetConfig) (env.Source, error) {
		return &datasetSource{name: "swesmith", cfg: cfg, make: sweSmith,
			url: "https://huggingface.co/datasets/SWE-bench/SWE-smith/resolve/" +
				"699b53400d3855206a0fbf3ff4beaf1a52f4f232/data/train-00000-of-00001.parquet"}, nil
	})
}

// sweSmithExcluded returns repositories and instances that cannot be verified, because their tests hang or fail even
// with the gold patch.
func sweSmithExcluded() []string {
	return []string{
		"conan-io__conan.86f29e13", "facebookresearch__hydra.0f03eb60", "spulec__freezegun.5f171db0",
		"life4__textdistance.c3aca916.combine_file__0sfget5n",
	}
}

// sweSmith makes a task from a row (instance_id, repo, patch, FAIL_TO_PASS, PASS_TO_PASS, image_name,
// problem_statement). The patch in the row adds the bug; the gold patch undoes it.
func sweSmith(r *row) instance {
	id, repo, bug, image := r.text("instance_id"), r.text("repo"), r.text("patch"), r.text("image_name")
	gold, err := taskfile.Reverse([]byte(bug))
	if err != nil {
		r.problem(`column "patch": %v`, err)
	}
	name := strings.TrimPrefix(repo, "swesmith/") // owner__name.commit
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || !strings.Contains(name, "__") || !commitPattern.MatchString(name[dot+1:]) {
		r.problem(`column "repo": want swesmith/owner__name.commit, there is %.80q`, repo)
		return instance{}
	}
	upstream, commit := strings.Replace(name[:dot], "__", "/", 1), name[dot+1:]
	if !strings.Contains(image, "/") {
		image = "swebench/" + strings.ReplaceAll(image, "__", "_1776_")
	}
	t := schemas.Task{
		InstanceID: id, Repo: upstream, BaseCommit: commit, BugPatch: bug, GoldPatch: string(gold), Image: image,
		Instructions: r.optionalText("problem_statement"), BugKind: "synthetic",
		Origin: &schemas.Origin{Operator: operatorOf(id), UpstreamRepo: "github.com/" + upstream, BaseCommit: commit},
	}
	if strings.TrimSpace(t.Instructions) == "" {
		t.Instructions = "Some tests of this repository fail. Find the cause in the program, not in its tests, and fix it.\n"
	}
	t.Tests = schemas.TestSpec{Method: schemas.VerifyPytest, XFailPasses: true, Files: append(taskfile.DefaultTestFiles(), "**/tests/**")}
	t.Tests.FailToPass, t.Tests.PassToPass = withoutDuplicates(r.list("FAIL_TO_PASS"), r.list("PASS_TO_PASS"))
	files := map[string]bool{}
	for _, ids := range [][]string{t.Tests.FailToPass, t.Tests.PassToPass} {
		for _, test := range ids {
			file, _, ok := strings.Cut(test, "::")
			if ok {
				files[file] = true
			}
		}
	}
	t.Entrypoint = strings.Join(append([]string{"python -m pytest -q -p no:cacheprovider"}, sortedKeys(files)...), " ")
	return instance{task: t, repo: upstream, commit: commit, conda: true,
		change: func(t *workspace.Tree) (*workspace.Tree, error) { return taskfile.Apply(t, []byte(bug)) }}
}

// operatorOf returns the operator that made the bug, from an id of the form owner__name.commit.operator__hash.
func operatorOf(id string) string {
	last := id[strings.LastIndexByte(id, '.')+1:]
	operator, _, _ := strings.Cut(last, "__")
	return operator
}
