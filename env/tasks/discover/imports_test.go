package discover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/env/workspace/setup"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestModulesOfCheckout(t *testing.T) {
	e := gather(treeOf(t, "-- setup.py --\nsetup(name='a', package_dir={'': 'code'})\n-- code/four.py --\n-- docs/conf.py --\n-- one.py --\n-- pkg/__init__.py --\n-- pkg/part.py --\n-- pkg/no-module.py --\n"+
		"-- pkg/tests/test_a.py --\n-- src/two/__init__.py --\n-- src/space/deep/__init__.py --\n-- lib/three/x.py --\n-- tests/helper.py --\n"))
	got := strings.Join(e.modules(), " ")
	for _, want := range []string{"one", "pkg", "pkg.part", "two", "space.deep", "three.x", "four"} {
		if !slices.Contains(e.modules(), want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	for _, bad := range []string{"setup", "docs", "no-module", "test", "helper"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s has %s", got, bad)
		}
	}
}

// Tests that import an installed copy prove nothing about the checkout.
func TestImportsFromElsewhereFailThePlan(t *testing.T) {
	elsewhere := passing("", "passed")
	elsewhere.Probe = []byte("{}\n{\"a\": \"/opt/task/lib/python3.11/site-packages/a/__init__.py\"}\n")
	const cause = "the tests import a from /opt/task/lib/python3.11/site-packages/a/__init__.py and not from the checkout"
	found, err := fakeSandbox(func(commands string) (verify.Run, error) {
		if strings.Contains(commands, "sys.path.insert(0, '/testbed')") && strings.Contains(commands, "-e .") {
			return passing("", "passed"), nil
		}
		return elsewhere, nil
	}).find(t, project+"-- a/__init__.py --\n"+pytestFile)
	if err != nil || len(found.Attempts) != 2 || found.Attempts[0].Usable || found.Attempts[0].Error != cause || found.Why != "from pyproject.toml; put the checkout first on the module path: "+cause {
		t.Error(found, err)
	}
	_, err = fakeSandbox(func(string) (verify.Run, error) { return elsewhere, nil }).find(t, project+"-- a/__init__.py --\n"+pytestFile)
	if none, ok := errors.AsType[*NotFoundError](err); !ok || !strings.HasSuffix(Refusal(none), cause) {
		t.Error(err)
	}
}

// If the index does not know when packages were released, the limit is dropped at once; if old packages do not
// work, after all plans have failed.
func TestDateLimitIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		output, why string
		attempts    int
	}{
		"no dates": {"warning: `six-1.16.0.tar.gz` is missing an upload date, but user provided: 2020-05-06T00:00:00Z\nerror: no solution\n",
			"the package index does not say when packages were released", 2},
		"old packages": {"error: failed to build six\n", "no plan works with packages of that time", 4},
	} {
		found, err := Find(t.Context(), Config{
			Interpreters: pythons, Newest: time.Date(2020, 5, 6, 0, 0, 0, 0, time.UTC),
			Try: func(_ context.Context, task schemas.Task, _ *workspace.Tree, _ verify.Variant) (verify.Run, error) {
				if strings.Contains(strings.Join(task.Setup, ";"), "UV_EXCLUDE_NEWER") {
					return verify.Run{}, &setup.CommandError{ExitCode: 1, Output: c.output}
				}
				return passing("", "passed"), nil
			},
		}, schemas.Task{InstanceID: "a"}, treeOf(t, project+pytestFile))
		if err != nil || found.NoLimit != c.why || len(found.Attempts) != c.attempts {
			t.Errorf("%s: %v, %q, %v", name, err, found.NoLimit, found.Attempts)
		}
	}
}

// Packages of a time are not installed for an interpreter that is newer.
func TestInterpretersInTime(t *testing.T) {
	for date, want := range map[string]string{"2020-12": "3.9.18", "2022-10": "3.11.2 3.9.18", "2015-01": "3.11.2 3.9.18 3.12.1 3.6.15", "2030-01": "3.11.2 3.9.18 3.12.1"} {
		at, err := time.Parse("2006-01", date)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range inTime(pythons, at) {
			got = append(got, p.Version)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", date, got, want)
		}
	}
	if len(inTime(pythons, time.Time{})) != len(pythons) {
		t.Error("without a date, some are left out")
	}
}
