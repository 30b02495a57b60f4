package sources

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	register("sweqa", "SWE-QA: questions about 15 repositories; agents submit answers, which are not graded", nil, func(cfg DatasetConfig) (env.Source, error) {
		return &datasetSource{name: "sweqa", cfg: cfg, make: sweQA}, nil
	})
}

// sweQACommits are the repositories of the benchmark and their commits.
var sweQACommits = map[string][2]string{
	"astropy": {"astropy/astropy", "0a041d3"}, "django": {"django/django", "14fc2e9"}, "flask": {"pallets/flask", "85c5d93"},
	"matplotlib": {"matplotlib/matplotlib", "a5e1f60"}, "pylint": {"pylint-dev/pylint", "44740e5"},
	"pytest": {"pytest-dev/pytest", "5989efe"}, "requests": {"psf/requests", "46e939b"},
	"scikit-learn": {"scikit-learn/scikit-learn", "adb1ae7"}, "sphinx": {"sphinx-doc/sphinx", "6c9e320"},
	"sqlfluff": {"sqlfluff/sqlfluff", "db9801b"}, "sympy": {"sympy/sympy", "3c817ed"}, "xarray": {"pydata/xarray", "40119bf"},
	"conan": {"conan-io/conan", "52f43d9"}, "reflex": {"reflex-dev/reflex", "fe0f946"}, "streamlink": {"streamlink/streamlink", "ab1f365"},
}

var shardSuffix = regexp.MustCompile(`-\d{5}-of-\d{5}$`)

// sweQA makes a task from a row (question, answer). The name of the file is that of the repository. The reference
// answer is not used.
func sweQA(r *row) instance {
	file, _, _ := strings.Cut(r.where, ": row ")
	file = filepath.Base(file[:max(strings.LastIndex(file, filepath.Ext(file)), 0)])
	name := shardSuffix.ReplaceAllString(file, "")
	source, known := sweQACommits[strings.ReplaceAll(name, "_", "-")]
	if !known {
		r.problem("%q is not a repository of the benchmark: keep the names of the files (flask.jsonl, ...)", name)
		return instance{}
	}
	r.text("answer") // records a problem if it is missing
	return instance{repo: source[0], commit: source[1], task: schemas.Task{
		InstanceID: name + "-" + strconv.Itoa(r.index), Repo: source[0], BaseCommit: source[1], Instructions: r.text("question"),
		Image: "python:3.12", BugKind: "question", Entrypoint: "true", Visibility: schemas.TestsVisible,
		Tests:  schemas.TestSpec{Method: schemas.VerifyNone},
		Origin: &schemas.Origin{UpstreamRepo: "github.com/" + source[0], BaseCommit: source[1]},
	}}
}
