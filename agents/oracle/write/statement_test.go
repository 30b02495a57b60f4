package write

import (
	"slices"
	"strings"
	"testing"
)

func TestParseStatement(t *testing.T) {
	for _, c := range []struct{ text, kind, expression, target string }{
		{"if a and not b:", conditionStatement, "a and not b", ""},
		{"while x[i:j] < (lambda: 3)():", conditionStatement, "x[i:j] < (lambda: 3)()", ""},
		{"elif n: return 1", conditionStatement, "n", ""},
		{"assert a == b, 'why'", conditionStatement, "a == b", ""},
		{"return a + f(b=1)  # why", returnStatement, "a + f(b=1)", ""},
		{"return", returnStatement, "", ""},
		{"x = y = f(a=1)", assignStatement, "f(a=1)", "x"},
		{"self.x: int = 3", assignStatement, "3", "self.x"},
		{"d['a'] += 2", updateStatement, "2", "d['a']"},
		{"for i, x in enumerate(items):", loopStatement, "enumerate(items)", "i, x"},
		{"f(x == y, *args)", otherStatement, "f(x == y, *args)", ""},
		{"raise ValueError(x)", otherStatement, "", ""},
	} {
		s, ok := parseStatement("    " + c.text)
		if !ok || s.kind != c.kind || s.expression() != c.expression || s.target != c.target {
			t.Errorf("%s: %v %s %q %q", c.text, ok, s.kind, s.expression(), s.target)
		}
	}
	for _, text := range []string{"def f(x):", "class A:", "import os", "@wraps", "x = 'open", "", "# only a comment"} {
		if _, ok := parseStatement(text); ok {
			t.Errorf("%q is a statement", text)
		}
	}
}

// Each repair is among the variants of the statement.
func TestVariants(t *testing.T) {
	words := vocabulary{names: []string{"a", "b", "key", "min_size", "max_size"}, attributes: []string{"left", "right"}, strings: []string{`"year"`, `"century"`}, constants: []string{"EMPTY"}}
	for _, c := range []struct{ statement, repair string }{
		{"if a < b:", "if a <= b:"},
		{"if a or b:", "if not a or b:"},
		{"if not a:", "if a:"},
		{"while not (a and b):", "while a and b:"},
		{"return a in b", "return a not in b"},
		{"return a is not b", "return a is b"},
		{"x = [a for a in b if a]", "x = [a for a in b if not a]"},
		{"return a[1:]", "return a[:]"},
		{"return a[:-1]", "return a[:]"},
		{"return a[b - 1]", "return a[b]"},
		{"return a[b + 1:]", "return a[b:]"},
		{"return a[-1]", "return a[0]"},
		{"n = b - a", "n = a - b"},
		{"n = len(b) / len(a)", "n = len(a) / len(b)"},
		{"return f(b, a)", "return f(a, b)"},
		{"return f(b)", "return f(a)"},
		{"return f(b, min=min_size)", "return f(b, min=min_size, max=max_size)"},
		{"return a if b else key", "return key if b else a"},
		{"return max(a)", "return min(a)"},
		{"n = 3", "n = 2"},
		{"n = -3", "n = -4"},
		{"n = 1", "n += 1"},
		{"n += 1", "n -= 1"},
		{"return True", "return False"},
		{"return self.left", "return self.right"},
		{`n = int(d["century"])`, `n = int(d["year"])`},
		{"x = a", "x = a.copy()"},
		{"break", "continue"},
		{`n = d['century']`, `n = d['year']`},
		{"return random() * a", "return int(random() * a)"},
		{"x = str(a.b)", "x = str(str(a.b))"},
		{"x = a.b.encode('x')", "x = str(a.b).encode('x')"},
		{"if a == 'Z':", "if a.upper() == 'Z':"},
		{"x = f(m.group(1), b)", "x = f(m.group(1).upper(), b)"},
		{"x = (f(a) for a in b)", "x = [f(a) for a in b]"},
		{"x = (f(a) for a in b)", "x = tuple(f(a) for a in b)"},
		{"return f(a)", "return f(a, key=key)"},
		{"if a.b in C:", "if not a or a.b in C:"},
		{"if a == 1 or b:", "if key and (a == 1 or b):"},
		{"x = f(a,\n      b)", "x = f(b,\n      a)"},
		{"d[k] = layer.get(k) or d[k]", "d[k] = layer.get(k, d[k])"},
		{"return f(1, n)", "return f(n)"},
		{"return f(n, 1)", "return f(n)"},
		{"return list(a)", "return sorted(a)"},
		{"return (2 ** n)", "return (2 ** n) - 1"},
		{"value = 10 * n", "value *= 10 * n"},
		{"return a", "return EMPTY"},
		{"yield a // b", "yield b // a"},
		{"n = size or 10", "n = size if size is not None else 10"},
	} {
		s, ok := parseStatement(c.statement)
		if !ok {
			t.Fatal(c.statement)
		}
		if !slices.ContainsFunc(s.variants(words), func(v variant) bool { return v.statement == c.repair }) {
			t.Errorf("%s is not a variant of %s", c.repair, c.statement)
		}
	}
}

// A variant has one change, and its expression is that of the changed statement.
func TestVariantExpressions(t *testing.T) {
	s, _ := parseStatement("total -= price")
	for _, v := range s.variants(vocabulary{}) {
		if v.statement == "total += price" && (v.expression != "total + price" || v.original != "total - price") {
			t.Errorf("%+v", v)
		}
	}
	for text, want := range map[string]string{"n -= a - b": "n - (a - b)", "s += f(a)": "s + (f(a))", "s += a": "s + a", "s *= a.b": "s * a.b"} {
		if s, _ := parseStatement(text); s.evaluated() != want {
			t.Errorf("%s computes %s, want %s", text, s.evaluated(), want)
		}
	}
	s, _ = parseStatement("if 'a < b' == a:")
	for _, v := range s.variants(vocabulary{}) {
		if strings.Contains(v.statement, "<=") {
			t.Errorf("a string was changed: %s", v.statement)
		}
	}
}

// The variables of comprehensions and lambdas do not exist in the frame of the statement.
func TestOperandsOfComprehensions(t *testing.T) {
	names := []string{"rows", "row", "key", "limit", "a"}
	for text, want := range map[string][]string{
		"x = [row[key] for row in rows if row[key] > limit]": {"key", "rows", "limit"},
		"x = sorted(rows, key=lambda a: a.n + limit)":        {"rows", "limit"},
		"x = row[key] + limit":                               {"key", "limit", "row[key]"},
	} {
		s, _ := parseStatement(text)
		if got := s.operands(names); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzVariants(f *testing.F) {
	for _, text := range []string{"if a[1:] and not b:", "x = f'{a}' + \"b\"", "return a if b else (c, -1)", "x = [", "d[:\\", "a -= b[-1] ** c(d)(e)", "lambda: (yield)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, _ := tokenize(text)
		for i, x := range tokens {
			if x.at >= x.end || text[x.at:x.end] != x.text || i > 0 && x.at < tokens[i-1].end {
				t.Fatalf("token %d of %q: %+v", i, text, x)
			}
		}
		s, ok := parseStatement(text)
		if !ok || len(s.tokens) > 40 {
			return
		}
		s.operands([]string{"a", "b"})
		for _, v := range s.variants(vocabulary{names: []string{"a", "b"}}) {
			if v.statement == s.text {
				t.Fatalf("a variant of %q changes nothing", text)
			}
		}
	})
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a['b'] + \\\n    c[d]":          "a['b'] + c[d]",
		"f(\n    a,  # first\n    b\n)":  "f(a, b)",
		"'a  b' +\\\n'c'":                "'a  b' + 'c'",
		"  x  ":                          "x",
		"[\"\"\"a\nb\\\nc\"\"\",\n 'd']": `["""a\nbc""", 'd']`,
		"x if y\n  else z":               "x if y else z",
		"len(a[\n 1:\n])  +  b":          "len(a[1:])  +  b",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
