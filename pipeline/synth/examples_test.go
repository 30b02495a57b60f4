package synth

import (
	"testing"
)

// The code of a failure's scene runs without the test, with and without the bug. It is dropped if it does not show the
// failure.
func TestScenesThatShowNothingAreDropped(t *testing.T) {
	counter := "seen = []\n\n\ndef add(x):\n    seen.append(x)\n    return len(seen)\n"
	buggy := "seen = []\n\n\ndef add(x):\n    if x in seen:\n        raise KeyError(x)\n    seen.append(x)\n    return len(seen) + (x < 0)\n"
	r := healthy(t, "counter", "PYTHONPATH=lib python3 -m pytest -q", map[string]string{"lib/counter.py": counter})
	w := &worker{bench: benchOf(t, r)}
	scene := func(kind, call string, before ...string) Failure {
		return Failure{Type: kind, Left: "2", Right: "1", Scene: &Scene{Relation: relationEqual, Call: call, Imports: []string{"import counter"}, Before: before, SelfContained: true}}
	}
	want := map[string]Failure{
		"a wrong value":                   scene("AssertionError", "counter.add(-1)"),
		"an exception":                    scene("KeyError", "counter.add(1)", "counter.add(1)"),
		"dropped: the same result":        scene("AssertionError", "counter.add(1)"),
		"dropped: a value":                scene("AssertionError", "(0, 1)"),
		"dropped: another exception":      scene("ValueError", "counter.add(1)", "counter.add(1)"),
		"dropped: an exception, no value": scene("AssertionError", "counter.add(1)", "counter.add(1)"),
		"dropped: ends its process":       scene("AssertionError", "counter.add(-1)", "import os", "os._exit(0)"),
		"values that nothing reported": {Type: "AssertionError", Scene: &Scene{Relation: relationEqual, Want: "1", Swapped: true, Call: "counter.add(-1)",
			Imports: []string{"import counter"}, SelfContained: true}},
		"dropped: an address": scene("AssertionError", "object()"),
		"no import":           {Type: "AssertionError", Scene: &Scene{Relation: relationEqual, Want: "1", Call: "f(1)", Imports: []string{"import absent"}, SelfContained: true}},
		"needs the test":      {Type: "AssertionError", Scene: &Scene{Call: "f(1)"}},
	}
	var trial Trial
	for name, f := range want {
		f.Test = name
		trial.Failures = append(trial.Failures, f)
	}
	before := trial.Failures
	if err := w.checkScenes(t.Context(), &trial, map[string]string{"lib/counter.py": buggy}); err != nil {
		t.Fatal(err)
	}
	for i, f := range trial.Failures {
		if dropped := f.Test[:3] == "dro"; (f.Scene.Call == "") != dropped {
			t.Errorf("%s: the scene is %+v", f.Test, f.Scene)
		}
		if f.Test == "values that nothing reported" && (f.Left != "1" || f.Right != "2") {
			t.Errorf("%s: %s != %s", f.Test, f.Left, f.Right)
		}
		if f.Test == "no import" && f.Left != "" {
			t.Errorf("%s: the value is %s", f.Test, f.Left)
		}
		if before[i].Scene.Call == "" {
			t.Errorf("%s: the failures of the journal's trial have changed", f.Test)
		}
	}
}
