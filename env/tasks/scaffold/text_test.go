package scaffold

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/workspace"
)

const gold = `diff --git a/pkg/cache.py b/pkg/cache.py
--- a/pkg/cache.py
+++ b/pkg/cache.py
@@ -10,7 +10,7 @@ class Cache(dict):
     def evict(self):
-        if self.size > self.limit:
+        if self.size >= self.maxsize:
             self.popitem()
`

func TestInstructions(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"a bug": {"Fix crash when the list of values is empty (#12)", "Crash when the list of values is empty."},
		"scope and trailers": {"fix(cache): wrong order after an expired entry returns\n\nCloses #3\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>",
			"Wrong order after an expired entry returns."},
		"body about the bug": {"fix #7\n\nReading a file without a final newline loses the last record.\nThe result is one record short.\n\nUse >= instead of >.\n\n    if a:\n        b()\n",
			"Reading a file without a final newline loses the last record. The result is one record short."},
		"names of the fix": {"Fix comparison in Cache.evict\n\nEntries stay one step too long in memory after that. `maxsize` was wrong. See pkg/cache.py.",
			"Entries stay one step too long in memory after that."},
		"a solution":         {"Use >= when comparing the number of entries with the limit", ""},
		"an order":           {"Read wrong-side rows from the other end\n\nCharts of odd rows come out mirrored.", "Charts of odd rows come out mirrored."},
		"another order":      {"Cap the wait between two attempts at its limit", ""},
		"no symptom":         {"Half-open intervals in the calendar view", ""},
		"a symptom":          {"Crash when a series has no values yet", "Crash when a series has no values yet."},
		"nothing":            {"fix bug", ""},
		"only a reference":   {"Fixes https://example.com/issues/3", ""},
		"a code block":       {"Fix bug where a second call returns the old value\n\n```python\nevict()\n```\n", "A second call returns the old value."},
		"list of the change": {"Fixed reading of dates before the epoch\n\n- add a test\n- check the sign", "Reading of dates before the epoch."},
		"a module's name":    {"Fix the cache that forgets its newest entries", ""},
	} {
		f := Fix{Commit: workspace.Commit{Message: c.message}, Gold: gold, Files: []string{"pkg/cache.py"}}
		if got := Instructions(f, nil); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestInstructionsLeaveOutSentencesThatLintRefuses(t *testing.T) {
	f := Fix{Commit: workspace.Commit{Message: "Fix crash when the list of values is empty\n\nIt fails with an odd message about line 3."}}
	lint := func(text string) []string {
		if strings.Contains(text, "line 3") {
			return []string{"line number"}
		}
		return nil
	}
	if got := Instructions(f, lint); got != "Crash when the list of values is empty." {
		t.Error(got)
	}
}

func TestFromTests(t *testing.T) {
	many := strings.Split(strings.TrimSuffix(strings.Repeat("t::a,", 22), ","), ",")
	for want, failing := range map[string][]string{
		"because this test does not pass:\n\n- t::b\n": {"t::b"},
		"these tests do not pass:\n\n- t::a":           many,
		"- and 2 more\n\nFind the cause":               many,
		"The command `run` fails.\n\nFind":             nil,
	} {
		if got := FromTests("run", failing); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
