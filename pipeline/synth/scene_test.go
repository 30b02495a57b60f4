package synth

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sceneProgram imports pack.test_shop from the two directories that it gets, runs its tests, and prints the scene of
// each failure by the name of the test.
const sceneProgram = `
import json, sys
sys.path[:0] = sys.argv[1:3]
import tracesmith_scene
import pack.test_shop as test_shop
out = {}
for name, test in sorted(vars(test_shop).items()):
    if name.startswith("test_"):
        try:
            test()
        except Exception:
            tb = sys.exc_info()[2].tb_next
            out[name] = tracesmith_scene.scene(tb.tb_frame, tb.tb_lineno)
print(json.dumps(out))
`

const shop = `class Cart:
    def __init__(self):
        self.items = []

    def __or__(self, item):
        self.add(item)
        return self

    def __eq__(self, other):
        return self is other

    def add(self, item):
        self.items.append(item)
        return len(self.items)


def discount(cart):
    return len(cart.items) // 10


def price(item, count=1):
    if item == "none":
        raise KeyError(item)
    return 5 * count
`

const shopTests = `from shop import Cart
from shop import discount
from .shop import price
from .tests.helpers import total_of


def test_variable_holds_the_result():
    total = price("pen")
    assert total == 3


def test_unused_assignments():
    names = ["pen", "ink"]
    expected = 4
    assert price("ink", count=2) == expected


def test_parameters(item="two pens", count=3):
    assert price(item, count=count) == 7


def test_parameter_used_twice(item="pen"):
    assert price(item) + len(item) == 7


def test_earlier_assertions():
    cart = Cart()
    assert price("pen") == 5
    assert len(cart.items) == 0
    assert cart.add("pen") == 1
    assert cart.add("ink") == 1


def test_earlier_negations():
    cart = Cart()
    assert not cart.add("pen") == 2
    assert not discount(cart)
    assert cart.add("ink") == 1


def test_assignment_fails():
    total = price("none")
    assert total == 1


def test_object_of_one_use():
    cart=Cart()  # empty
    assert cart.add("pen") == 2


def test_comment():
    price("none")  # type: ignore


def test_class_of_the_test():
    class Bag(Cart):
        pass
    assert Bag().add("ink") == 1
    assert Bag().add("pen") == 2


def test_operators_may_change_objects():
    cart = Cart()
    cart | "pen"
    assert cart | "ink" == cart
    assert cart | "ink" == cart
    assert len(cart.items) == 1


def test_call_repeats():
    cart = Cart()
    assert cart.add("pen") == 1
    assert cart.add("pen") == 1


def test_helper_of_the_tests():
    total = total_of("pen")
    assert total == 6


def test_several_lines():
    for _ in range(2):
        if True:
            assert price(
                "pen",
                count=[
                    2,
                ][0],
            ) == 3


def test_two_imports():
    assert discount(Cart()) == 3


def test_loop():
    for word in ["a", "b"]:
        total = price(word)
        assert total == 6


def test_expected_value_first(wanted=(3, 4)):
    total = price("pen"), price("ink")
    assert wanted == total


def test_other_variables():
    total = price("pen")
    doubled = total + total
    other = price("ink")
    assert total == 3
`

// A scene shows only what a user would write to see the failure.
func TestScenesShowOnlyWhatIsNeeded(t *testing.T) {
	dir, programs := t.TempDir(), "python"
	for name, text := range map[string]string{
		"shop.py": shop, "pack/__init__.py": "", "pack/shop.py": shop, "pack/test_shop.py": shopTests,
		"pack/tests/__init__.py": "", "pack/tests/helpers.py": "from ..shop import price as total_of\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "-c", sceneProgram, dir, programs)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var scenes map[string]Scene
	if err := json.Unmarshal(out, &scenes); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, s := range scenes {
		got[name] = strings.Join(append(s.Before, s.Call), "; ") + " == " + s.Want
		if selfContained := name != "test_loop" && name != "test_helper_of_the_tests"; s.SelfContained != selfContained {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for name, want := range map[string]string{"test_parameters": "from pack.shop import price", "test_two_imports": "from shop import Cart, discount"} {
		if got := strings.Join(scenes[name].Imports, "; "); got != want {
			t.Errorf("%s imports %q, want %q", name, got, want)
		}
	}
	want := map[string]string{
		"test_variable_holds_the_result":    `price("pen") == 3`,
		"test_unused_assignments":           `price("ink", count=2) == 4`,
		"test_parameters":                   `price('two pens', count=3) == 7`,
		"test_parameter_used_twice":         `item = 'pen'; price(item) + len(item) == 7`,
		"test_earlier_assertions":           `cart = Cart(); cart.add("pen"); cart.add("ink") == 1`,
		"test_earlier_negations":            `cart = Cart(); cart.add("pen"); discount(cart); cart.add("ink") == 1`,
		"test_object_of_one_use":            `Cart().add("pen") == 2`,
		"test_class_of_the_test":            "class Bag(Cart):\n    pass\n; Bag().add(\"pen\") == 2",
		"test_loop":                         " == 6",
		"test_two_imports":                  "discount(Cart()) == 3",
		"test_helper_of_the_tests":          " == 6",
		"test_operators_may_change_objects": "cart = Cart(); cart | \"pen\"; cart | \"ink\"; cart | \"ink\"; len(cart.items) == 1",
		"test_call_repeats":                 `cart = Cart(); cart.add("pen"); cart.add("pen") == 1`,
		"test_several_lines":                "price(\n    \"pen\",\n    count=[\n        2,\n    ][0],\n) == 3",
		"test_assignment_fails":             `price("none") == `,
		"test_other_variables":              `price("pen") == 3`,
		"test_comment":                      `price("none") == `,
		"test_expected_value_first":         `(price("pen"), price("ink")) == (3, 4)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const setupTests = `import unittest
from shop import Cart, price


class TestCart(unittest.TestCase):
    def setUp(self):
        """A cart for each test."""
        self.cart = Cart()
        self.count = 2

    def check(self, item, size):
        return self.assertEqual(self.cart.add(item), size)

    def test_a_helper(self):
        self.check("pen", 2)

    def test_a_helper_after_a_change(self):
        self.cart.add("ink")
        self.check("pen", 3)

    def test_setup(self):
        self.cart.add("ink")
        self.assertEqual(self.cart.add("pen"), self.count + 1)

    def test_unused_setup(self):
        self.assertEqual(price("pen"), 6)
`

// setupProgram is like sceneProgram for test cases.
const setupProgram = `
import json, sys, unittest
sys.path[:0] = sys.argv[1:3]
import tracesmith_failure
import pack.test_shop as test_shop
out = {}
class Result(unittest.TestResult):
    def addFailure(self, test, err):
        found = tracesmith_failure.describe(err[0], err[1], err[2], lambda file: "test_shop.py" if file.endswith("test_shop.py") else None)
        out[test.id().split(".")[-1]] = found["scene"]
unittest.defaultTestLoader.loadTestsFromModule(test_shop).run(Result())
print(json.dumps(out))
`

// Attributes that setUp assigns become variables. The scene of a failure in a helper is not self-contained if the test
// did something before it called the helper.
func TestScenesOfTestCases(t *testing.T) {
	dir := t.TempDir()
	pack := filepath.Join(dir, "pack")
	if err := errors.Join(os.Mkdir(pack, 0o755), os.WriteFile(filepath.Join(dir, "shop.py"), []byte(shop), 0o644),
		os.WriteFile(filepath.Join(pack, "__init__.py"), nil, 0o644), os.WriteFile(filepath.Join(pack, "test_shop.py"), []byte(setupTests), 0o644)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "-c", setupProgram, "python", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var scenes map[string]Scene
	if err := json.Unmarshal(out, &scenes); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]string{}
	for name, s := range scenes {
		if got[name] = ""; s.SelfContained {
			got[name] = strings.Join(append(append(s.Imports, s.Before...), s.Call), "; ")
		}
	}
	if diff := cmp.Diff(map[string]string{
		"test_a_helper":                "from shop import Cart; Cart().add('pen')",
		"test_a_helper_after_a_change": "",
		"test_setup":                   "from shop import Cart; cart = Cart(); cart.add(\"ink\"); cart.add(\"pen\")",
		"test_unused_setup":            "from shop import price; price(\"pen\")",
	}, got); diff != "" {
		t.Error(diff)
	}
}

const narrowProgram = `
import json, sys
sys.path.insert(0, sys.argv[1])
import tracesmith_failure
out, lines = [], ["line %d" % n for n in range(40)]
for left, right in (lines, ["line 0", "other"] + lines), (lines, lines[1:]), (lines, lines + ["more"]):
    scene = {"call": "show(x)"}
    got = tracesmith_failure.narrow(scene, "\n".join(left), "\n".join(right))
    out.append("%s: %s != %s %s" % (scene["call"], got[0], got[1], scene["part"]))
print(json.dumps(out))
`

// Of two long texts, the scene shows the first lines that differ, or the line counts if one text begins with the other.
func TestLongValuesAreNarrowed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "python3", "-B", "-c", narrowProgram, "python").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"show(x).splitlines()[1]: line 1 != other ",
		"show(x).splitlines()[0]: line 0 != line 1 ",
		"len(show(x).splitlines()): 40 != 41 len",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
