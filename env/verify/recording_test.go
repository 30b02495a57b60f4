package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With a recorded run of the patched tree, the verdict is the same as after a new run, even if it depends on
// what the patch changed. A recording of another tree is not used.
func TestRecordingGivesTheVerdictOfARun(t *testing.T) {
	v, fixed := verifier(t), honest(t)
	driver := &countingDriver{Driver: v.cfg.Driver, gate: make(chan struct{})}
	close(driver.gate)
	v.cfg.Driver = driver
	prices := fixed.text(t, "shop/prices.py")
	tracing := fixed.edited("shop/prices.py", prices+"\n\nimport sys\n\nsys.settrace(lambda frame, event, arg: None)\n")
	otherBug := fixed.edited("shop/basket.py", strings.Replace(fixed.text(t, "shop/basket.py"), "[(quantity, price)", "[(price, price)", 1))
	recordings := map[string]*Recording{} // by the hash of the recorded tree
	for name, c := range map[string]struct {
		base, recorded, final project
		runs                  int32
		pass                  bool
	}{
		"fix":                         {fixture(t), fixed, fixed, 0, true},
		"fix of another bug":          {otherBug, fixed, fixed, 0, true},
		"the patch sets a tracer":     {fixture(t), tracing, tracing, 0, false},
		"the base tree sets a tracer": {tracing.edited("shop/basket.py", otherBug.text(t, "shop/basket.py")), tracing, tracing, 0, true},
		"refused file":                {fixture(t), fixed, fixed.edited("sitecustomize.py", "x = 1\n"), 0, false},
		"restored tests":              {fixture(t), fixed, fixed.edited("tests/test_prices.py", "def test_total(): pass\n"), 0, true},
		"recording of another tree":   {fixture(t), fixed, fixture(t), 1, false},
		"recording of the buggy tree": {fixture(t), fixture(t), fixed, 1, true},
	} {
		recording := recordings[c.recorded.SHA256()]
		if recording == nil {
			var err error
			if recording, err = v.Record(t.Context(), task(c.recorded, pytestEntry, pytestSpec), c.recorded); err != nil {
				t.Fatal(err)
			}
			recordings[c.recorded.SHA256()] = recording
		}
		patch, _ := patchTo(t, v, c.base, c.final)
		verdict := func(recording *Recording) (string, int32) {
			before := driver.starts.Load()
			got, err := v.VerifyRecorded(t.Context(), task(c.base, pytestEntry, pytestSpec), c.base, patch, recording)
			if err != nil || got.Resolved == nil {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
			if *got.Resolved != c.pass {
				t.Errorf("%s: resolved %v: %s", name, *got.Resolved, got.Reason)
			}
			return got.Reason, driver.starts.Load() - before
		}
		want, _ := verdict(nil)
		got, runs := verdict(recording)
		if diff := cmp.Diff(want, got); diff != "" || runs != c.runs {
			t.Errorf("%s: %d runs, want %d; reason: %s", name, runs, c.runs, diff)
		}
	}
}
