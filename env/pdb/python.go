package pdb

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

var interpreter = regexp.MustCompile(`^(?:python|pypy)[0-9.]*[dmt]?$`)

// undebuggable maps programs under which a debugger does not work to the reason, which the model
// sees.
var undebuggable = map[string]string{
	"coverage": "coverage and a debugger cannot trace the same program, so leave `coverage run` out",
	"tox":      "tox runs the tests in other processes, where the debugger cannot follow",
	"nox":      "nox runs the tests in other processes, where the debugger cannot follow",
}

// rewritePython rewrites INTERPRETER [FLAGS] {-m MODULE | -c CODE | SCRIPT} ARGS. It removes
// another debugger from the command, as in python -m pdb x.py.
func rewritePython(entry string, words []token) (string, error) {
	front := entry[words[0].start:words[0].end]
	for i := 1; i < len(words); i++ {
		w, raw := words[i].lit, entry[words[i].start:words[i].end]
		if !strings.HasPrefix(w, "-") {
			return front + shimArgs + " " + wordsText(entry, words[i:]), nil
		}
		if w == "-" {
			return "", entrypointError(entry, "a program read from standard input cannot be debugged")
		}
		at := strings.IndexAny(w, "mcWX")
		if strings.HasPrefix(w, "--") || at < 0 {
			if w == "-i" || w == "-V" || w == "-h" || strings.HasPrefix(w, "--") && w != "--check-hash-based-pycs" {
				return "", entrypointError(entry, w+" makes no sense under a debugger")
			}
			if w == "--check-hash-based-pycs" && i+1 < len(words) {
				raw += " " + wordsText(entry, words[i+1:i+2])
				i++
			}
			front += " " + raw
			continue
		}
		if w[at] == 'W' || w[at] == 'X' {
			front += " " + raw
			if at == len(w)-1 && i+1 < len(words) { // its value is the next word
				i++
				front += " " + wordsText(entry, words[i:i+1])
			}
			continue
		}
		return rewriteTarget(entry, front, w, at, words[i+1:])
	}
	return "", entrypointError(entry, "it names no module and no script")
}

// rewriteTarget rewrites flag and the words after it. flag is a group of options such as -um whose
// letter at index at is m or c.
func rewriteTarget(entry, front, flag string, at int, rest []token) (string, error) {
	if at > 1 {
		front += " " + flag[:at]
	}
	value, args := flag[at+1:], rest
	var shown string
	if value == "" {
		if len(rest) == 0 {
			return "", entrypointError(entry, "-"+flag[at:]+" needs a value")
		}
		value, shown, args = rest[0].lit, wordsText(entry, rest[:1]), rest[1:]
	} else {
		shown = shellwords.Quote(value)
	}
	if flag[at] == 'm' && (value == "pdb" || value == "ipdb") {
		if len(args) > 1 && args[0].lit == "-c" {
			args = args[2:]
		}
		if len(args) == 0 {
			return "", entrypointError(entry, "it names no program to debug")
		}
		return front + shimArgs + " " + wordsText(entry, args), nil
	}
	if why := undebuggable[value]; flag[at] == 'm' && why != "" {
		return "", entrypointError(entry, why)
	}
	line := front + shimArgs + " -" + flag[at:at+1] + " " + shown
	if len(args) > 0 {
		line += " " + wordsText(entry, args)
	}
	return line, nil
}
