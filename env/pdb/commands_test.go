package pdb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeveralCommandsInOneCall(t *testing.T) {
	for text, want := range map[string][]string{
		"":                          nil,
		" \n\t\n":                   nil,
		"n":                         {"n"},
		"  p x ":                    {"p x"},
		"n ;; p x":                  {"n", "p x"},
		`p "a;;b" ;; n`:             {`p "a;;b"`, "n"},
		`p 'it\'s ;;' ;; n`:         {`p 'it\'s ;;'`, "n"},
		`p """a" ;; b""" ;; n`:      {`p """a" ;; b"""`, "n"},
		"b 1\nc":                    {"b 1", "c"},
		"b 1; b 2":                  {"b 1", "b 2"},
		"b f.py:3;  c; p x;":        {"b f.py:3", "c", "p x"},
		"p x; p y":                  {"p x", "p y"},
		"p x; y":                    {"p x; y"},
		"p 'a; p b'":                {"p 'a; p b'"},
		"p [x for x in (1, 2);p]":   {"p [x for x in (1, 2);p]"},
		"x = 1; y = 2":              {"x = 1; y = 2"},
		"!x = 1; n = 2":             {"!x = 1; n = 2"},
		"c\np x":                    {"c", "p x"},
		"p x\np y\npp z":            {"p x", "p y", "pp z"},
		"for x in y:\n    print(x)": {"for x in y:\n    print(x)"},
		"for x in y:\n  p = x\np x": {"for x in y:\n  p = x", "p x"},
		"n = 1\nprint(n)":           {"n = 1", "print(n)"},
		"x = 1\ny = 2":              {"x = 1\ny = 2"},
		"p foo(\n  1,\n2)\nc":       {"p foo(\n  1,\n2)", "c"},
		"x = '''\nc\n'''\np x":      {"x = '''\nc\n'''", "p x"},
		"p x # it's; c\nc":          {"p x # it's; c", "c"},
	} {
		if d := cmp.Diff(want, splitCommands(text)); d != "" {
			t.Errorf("splitCommands(%q) (-want +got):\n%s", text, d)
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
		for _, c := range splitCommands(text) {
			if c == "" {
				t.Errorf("splitCommands(%q) has an empty command", text)
			}
			asStatement(c)
			splitCondition(c)
		}
	})
}

func TestEachPythonCommands(t *testing.T) {
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
				t.Errorf("%q is not an error:\n%s", command, r.Text)
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
