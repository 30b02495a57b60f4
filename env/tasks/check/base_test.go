package check

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// testFile has tests that always pass, and one test of each other kind.
const testFile = `import os
import pytest

seen = []


@pytest.mark.parametrize("n", range(5))
def test_good(n):
    seen.append(n)


def test_hash_seed():
    assert os.environ["PYTHONHASHSEED"] == "0"


def test_needs_another(request):
    assert len(request.session.items) > 1


def test_alone():
    pass


@pytest.mark.skip
def test_skipped():
    pass


def test_broken():
    assert False
`

func TestFactoryBaseKeepsWhatAlwaysPasses(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	tree := project{"test_suite.py": testFile}.tree(t)
	s, err := Base(t.Context(), cfg, schemas.Task{InstanceID: "suite", Entrypoint: "python3 -m pytest -q", Workdir: schemas.DefaultWorkdir}, tree)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"alone", "good[0]", "good[1]", "good[2]", "good[3]", "good[4]"} {
		want = append(want, "test_suite.py::test_"+name)
	}
	if diff := cmp.Diff(want, s.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	dropped := []Dropped{{"test_suite.py::test_broken", "failed"}, {"test_suite.py::test_hash_seed", "flaky"},
		{"test_suite.py::test_needs_another", "order-dependent"}, {"test_suite.py::test_skipped", "skipped"}}
	if diff := cmp.Diff(dropped, s.Dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if _, known := s.Seconds[want[0]]; !known || s.Runs != 3 || s.Wall <= 0 || s.Method != schemas.VerifyPytest {
		t.Errorf("%+v", s)
	}
}

func TestBaseRefusesRepositories(t *testing.T) {
	cfg := config(t)
	cfg.Runs, cfg.Isolated = 2, -1
	four := "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\ndef test_d(): pass\n"
	for name, c := range map[string]struct {
		tree project
		want error
	}{
		"too few":      {project{"test_a.py": four}, ErrTooFewTests},
		"none":         {project{"a.py": ""}, verify.ErrNoTests},
		"uncollected":  {project{"test_a.py": "import nowhere\n"}, verify.ErrNotCollected},
		"cannot start": {project{"test_a.py": four, "conftest.py": "import nowhere\n"}, verify.ErrNotCollected},
	} {
		_, err := Base(t.Context(), cfg, schemas.Task{InstanceID: "x", Entrypoint: "python3 -m pytest -q", Workdir: schemas.DefaultWorkdir}, c.tree.tree(t))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The tests depend only on their order, not on the hash seed.
func TestOrderDependentTaskIsFlaky(t *testing.T) {
	cfg := config(t)
	cfg.Runs = 8
	ordered := shop.with(project{"tests/test_shop.py": "from shop import total\n\nSEEN = []\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\n" +
		"def test_first():\n    SEEN.append(1)\n\n\ndef test_second():\n    assert SEEN\n"})
	task := shopTask(patch(t, cfg, ordered, ordered.with(project{"shop.py": fixedShop["shop.py"]})))
	task.Tests.PassToPass = []string{"tests/test_shop.py::test_first", "tests/test_shop.py::test_second"}
	rep, err := Task(t.Context(), cfg, task, ordered.tree(t))
	if err != nil || rep.Status != Flaky || rep.Flake == nil || !slices.Equal(rep.Flake.Tests, []string{"tests/test_shop.py::test_second"}) {
		t.Fatalf("%+v, %v", rep, err)
	}
	if a, b := rep.Flake.Verdicts[0], rep.Flake.Verdicts[1]; a["tests/test_shop.py::test_second"] != "passed" || b["tests/test_shop.py::test_second"] != "failed" || len(a) != 3 || len(b) != 3 {
		t.Errorf("verdicts %v, %v", a, b)
	}
}

// Hidden tests verify the task, and their content is as secret as the fix.
func TestFactoryHiddenTestsAreChecked(t *testing.T) {
	suite.Factory.Require(t)
	cfg := config(t)
	cfg.Runs, cfg.Isolated = 2, -1
	task := shopTask(patch(t, cfg, shop, fixedShop))
	task.Visibility = schemas.TestsHidden
	task.Tests = schemas.TestSpec{
		Method: schemas.VerifyPytest, FailToPass: []string{"tests/test_unseen.py::test_three"},
		Patch:   patch(t, cfg, shop, shop.with(project{"tests/test_unseen.py": "from shop import total\n\n\ndef test_three():\n    marvellous_sum = total([1, 2, 3])\n    assert marvellous_sum == 6\n"})),
		Command: "python3 -m pytest -q tests/test_unseen.py",
	}
	rep, err := Task(t.Context(), cfg, task, shop.tree(t))
	if err != nil || rep.Status != Sound {
		t.Errorf("%+v, %v", rep, err)
	}
	task.Instructions = "See marvellous_sum."
	if rep, err = Task(t.Context(), cfg, task, shop.tree(t)); err != nil || rep.Status != Leaking || rep.Leaks[0].Token != "marvellous_sum" {
		t.Errorf("%+v, %v", rep, err)
	}
	task.Tests.Method = schemas.VerifyNone
	if rep, err = Task(t.Context(), cfg, task, shop.tree(t)); err != nil || rep.Status != Leaking && rep.Status != Unjudged {
		t.Errorf("%+v, %v", rep, err)
	}
}
