package pdb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	cases := []struct {
		text string
		want []string
		note bool
	}{
		{"", nil, false},
		{" \n\t\n", nil, false},
		{"n", []string{"n"}, false},
		{"  p x ", []string{"p x"}, false},
		{"p a; b", []string{"p a; b"}, false},
		{"n ;; p x", []string{"n", "p x"}, false},
		{`p "a;;b" ;; n`, []string{`p "a;;b"`, "n"}, false},
		{`p 'it\'s ;;' ;; n`, []string{`p 'it\'s ;;'`, "n"}, false},
		{"b 1\nc", []string{"b 1"}, true},
		{"c\np x", []string{"c"}, true},
		{"p x\np y\npp z", []string{"p x", "p y", "pp z"}, false},
		{"print(x)\n\nprint(y)\n", []string{"print(x)", "print(y)"}, false},
		{"p (a,\n   b)", []string{"p (a,\n   b)"}, false},
		{"for x in y:\n    print(x)\n", []string{"for x in y:\n    print(x)"}, false},
		{"!x = 1\n!y = 2", []string{"!x = 1", "!y = 2"}, false},
		{"n = 1\nprint(n)", []string{"n = 1\nprint(n)"}, false},
	}
	for _, c := range cases {
		got, note := split(c.text)
		if d := cmp.Diff(c.want, got); d != "" || (note != "") != c.note {
			t.Errorf("split(%q), note %q (-want +got):\n%s", c.text, note, d)
		}
	}
}

func TestAsStatement(t *testing.T) {
	for line, want := range map[string]string{
		"n":                "n",
		"n = 5":            "!n = 5",
		"n += 5":           "!n += 5",
		"c.items":          "!c.items",
		"l[0]":             "!l[0]",
		"a(1)":             "!a(1)",
		"p = 3":            "p = 3",
		"p(x)":             "p(x)",
		"b 12":             "b 12",
		"b f, x == 1":      "b f, x == 1",
		"condition 1 x==2": "condition 1 x==2",
		"l 1, 20":          "l 1, 20",
		"x.y":              "x.y",
		"list":             "list",
		"lists.x":          "lists.x",
	} {
		if got := asStatement(line); got != want {
			t.Errorf("asStatement(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestSplitCondition(t *testing.T) {
	for rest, want := range map[string][2]string{
		"12":                   {"12", ""},
		"m.py:12, x == (1, 2)": {"m.py:12", "x == (1, 2)"},
		"m.py:12 if x > 3":     {"m.py:12", "x > 3"},
		"f , a if b else c":    {"f", "a if b else c"},
		"12, if x":             {"12", "x"},
		", x":                  {"", "x"},
	} {
		spec, cond := splitCondition(rest)
		if got := [2]string{spec, cond}; got != want {
			t.Errorf("splitCondition(%q) = %q, want %q", rest, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("b 1\nc ;; p 'x")
	f.Fuzz(func(t *testing.T, text string) {
		commands, _ := split(text)
		for _, c := range commands {
			if c == "" {
				t.Errorf("split(%q) has an empty command", text)
			}
			asStatement(c)
			splitCondition(c)
		}
	})
}

func TestCommands(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		r := b.try("")
		b.has(r, "The command is empty")
		if !r.IsError || b.Frame() != nil {
			t.Errorf("empty command: %+v", r)
		}
		b.do("b 119 ;; c")
		b.at(b.do("n ;; n"), "tricky.py", 119)
		b.has(b.do("p n\np square"), "1\n0\n")
		b.has(b.do("for i in range(2):\n    print('i', i + n)"), "i 1\ni 2")
		b.has(b.do("!m = 7\n!k = 8"), "Current frame")
		b.has(b.do("p m + k"), "15")
		b.has(b.do("n = 40"), "Current frame")
		b.has(b.do("p n"), "40")
		b.has(b.do("pp {'k': list(range(3))}"), "{'k': [0, 1, 2]}")
		b.has(b.do("c\np n"), "Only the first line was run.")
		b.has(b.do("whatis n"), "<class 'int'>")
		b.has(b.do("w"), "-> globals()[sys.argv[1]]()")
		b.hasNot(b.do("l 1, 5"), "Current frame: tricky.py:119 in numbers\n114")
		b.has(b.do("ll"), "117  \tdef numbers():", "119 B->\t        square = n * n")
		b.has(b.do("a"), "Current frame")
		for command, want := range map[string]string{
			"p undefined":     "*** NameError: name 'undefined' is not defined",
			"p":               "An expression is missing",
			"p 1 +":           "*** SyntaxError",
			"p 1/0":           "*** ZeroDivisionError",
			"interact":        "interact needs a person",
			"commands 1":      "commands is not available",
			"debug numbers()": "debug (a debugger inside",
			"restart x":       "takes no arguments",
			"frobnicate":      "*** NameError",
			"!exit(3)":        "*** SystemExit",
			"jump 500":        "*** Jump failed",
		} {
			r := b.try(command)
			b.has(r, want)
			if !r.IsError {
				t.Errorf("%q is no error:\n%s", command, r.Text)
			}
		}
		r = b.try("p undefined ;; c")
		b.at(r, "tricky.py", 119) // the rest does not run after an error
		b.do("cl ;; r")
		if r := b.do("w"); r.Frame.Event != "return" {
			t.Errorf("after r: %+v", r.Frame)
		}
		b.has(b.do("retval"), "81")
		b.at(b.do("n"), "tricky.py", 153)
	})
}
