package mutate

import (
	"errors"
	"strings"
	"testing"
)

const modelAnswer = "Here it is:\n\n```python\ndef add(self, name, count):\n    if count < 0:\n        raise ValueError(\"count must be positive\")\n    have = self.items.get(name, 0)\n" +
	"    self.items[name] = have + count\n    return have + count\n```\nThe cache is not cleared.\n"

func TestAModelWritesABug(t *testing.T) {
	b := start(t, "testdata/shop")
	m, err := b.FromAnswer(t.Context(), Target{File: "stock.py", Func: "Stock.add"}, modelAnswer)
	if err != nil {
		t.Fatal(err)
	}
	after := string(b.patched("stock.py", m.Patch))
	if !strings.Contains(after, "    def add(self, name, count):\n        if count < 0:\n            raise") || !strings.Contains(after, "        return have + count\n\n    def names(self):") {
		t.Errorf("got\n%s", after)
	}
	if len(m.Funcs) != 1 || m.Funcs[0].Name != "Stock.add" || m.BodyHash == "" {
		t.Errorf("%+v", m.Funcs)
	}
}

// A model that writes a function again does not see its body.
func TestARewriteDoesNotShowTheBody(t *testing.T) {
	b := start(t, "testdata/shop")
	for _, rewrite := range []bool{true, false} {
		prompt, err := b.BugPrompt(t.Context(), Target{File: "stock.py", Func: "Stock.add", Rewrite: rewrite})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Contains(prompt, "have + count > self.limit")
		if body == rewrite || !strings.Contains(prompt, "    def add(self, name, count):\n        ...\n\n    def names") || !strings.Contains(prompt, "def total(") {
			t.Errorf("rewrite %v:\n%s", rewrite, prompt)
		}
	}
}

func TestModelAnswersWithoutABugAreRefused(t *testing.T) {
	b := start(t, "testdata/shop")
	same := "def total(prices, stock, discount=0):\n    amount = 0\n    for name in stock.names():\n        amount += prices[name] * stock.items[name]\n    return amount - discount\n"
	for name, c := range map[string]struct{ answer, why string }{
		"no code":            {"I will not do that.", "no block of code"},
		"the same":           {"```\n" + same + "```", "changes nothing"},
		"another name":       {"```\n" + strings.Replace(same, "total", "sum_up", 1) + "```", "must keep its name"},
		"other parameters":   {"```\n" + strings.Replace(same, "discount=0", "discount=1", 1) + "```", "must keep its name"},
		"two functions":      {"```\n" + same + "\n\ndef other():\n    pass\n```", "not one function"},
		"not Python":         {"```\ndef total(prices\n```", "does not parse"},
		"does not compile":   {"```\n" + same + "    break\n```", "does not compile"},
		"a statement":        {"```\nimport os\n```", "not one function"},
		"an open block":      {"```python\n" + same, "no block of code"},
		"only the docstring": {"```\n" + strings.Replace(same, "    amount = 0", "    \"\"\"Sum.\"\"\"\n    amount = 0", 1) + "```", "nothing that runs"},
	} {
		_, err := b.FromAnswer(t.Context(), Target{File: "stock.py", Func: "total"}, c.answer)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

func FuzzCodeBlock(f *testing.F) {
	f.Add(modelAnswer)
	f.Add("~~~\ndef f(): pass\n~~~")
	f.Add("def f():\n  pass")
	f.Fuzz(func(t *testing.T, answer string) {
		if text, err := codeBlock(answer); err == nil && (strings.TrimSpace(text) == "" || len(text) > maxCode) {
			t.Errorf("%q", text)
		}
	})
}
