package pdb

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

var interpreter = regexp.MustCompile(`^(?:python|pypy)[0-9.]*[dmt]?$`)

// runners start a command in an environment of their own, as in `uv run pytest`;
// the options listed take a value.
var runners = map[string]string{
	"uv": "--with --with-editable --with-requirements --python -p --extra --group --directory --project --package " +
		"--env-file --index --no-extra --no-group --only-group --index-url --default-index --find-links -f --cache-dir --config-file --color",
	"poetry": "-C --directory -P --project",
	"pipenv": "", "pdm": "-p --project", "rye": "", "hatch": "-e --env",
	"conda": condaOptions, "mamba": condaOptions, "micromamba": condaOptions + " -r --root-prefix -a --attach -e --env --rc-file",
}

const condaOptions = "-n --name -p --prefix --cwd"

// wrappers run the command behind their options; those listed take a value.
var wrappers = map[string]string{
	"env":      "-u --unset -C --chdir",
	"nice":     "-n --adjustment",
	"stdbuf":   "-i -o -e --input --output --error",
	"xvfb-run": "-n --server-num -s --server-args -e --error-file -f --auth-file -p --xauth-protocol -w --wait",
}

// elsewhere are programs under which nothing can be debugged, and why.
var elsewhere = map[string]string{
	"coverage": "coverage and a debugger cannot trace the same program, so leave `coverage run` out",
	"tox":      "tox runs the tests in other processes, where the debugger cannot follow",
	"nox":      "nox runs the tests in other processes, where the debugger cannot follow",
}

// program rewrites the words of the program's own command.
func program(entry string, words []token) (string, error) {
	if len(words) == 0 {
		return "", entryError(entry, "there is no command in it")
	}
	head := words[0]
	name := path.Base(head.lit)
	switch {
	case !head.fixed:
		return viaLaunch + text(entry, words), nil
	case interpreter.MatchString(name):
		return python(entry, words)
	case name == "exec" || name == "command" || name == "time" || name == "nohup":
		return program(entry, words[1:])
	case name == "timeout":
		return program(entry, afterTimeout(words))
	case name == "bash" || name == "sh" || name == "dash":
		return shell(entry, words)
	case elsewhere[name] != "":
		return "", entryError(entry, elsewhere[name])
	case slices.Contains([]string{"if", "for", "while", "until", "case", "done", "fi", "esac", "{", "}", "[[", "function"}, name):
		return "", entryError(entry, "loops, conditions and functions of the shell are not possible here")
	}
	if valued, ok := wrappers[name]; ok {
		return wrapped(entry, strings.Fields(valued), words)
	}
	if _, ok := runners[name]; ok && len(words) > 1 {
		return runner(entry, name, words)
	}
	return viaLaunch + text(entry, words), nil
}

// wrapped keeps a command that runs the one behind its options and assignments.
func wrapped(entry string, valued []string, words []token) (string, error) {
	for i := 1; i < len(words); i++ {
		w := words[i].lit
		switch {
		case slices.Contains(valued, w):
			i++
		case strings.HasPrefix(w, "-") || assignment.MatchString(w):
		default:
			run, err := program(entry, words[i:])
			return text(entry, words[:i]) + " " + run, err
		}
	}
	return "", entryError(entry, "there is no command behind "+words[0].lit)
}

func afterTimeout(words []token) []token {
	for i := 1; i < len(words); i++ {
		switch w := words[i].lit; {
		case w == "-s" || w == "-k" || w == "--signal" || w == "--kill-after":
			i++
		case strings.HasPrefix(w, "-"):
		default:
			return words[i+1:]
		}
	}
	return nil
}

// shell rewrites the text of `bash -lc 'TEXT'`.
func shell(entry string, words []token) (string, error) {
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w.lit == "-o" || w.lit == "-O":
			i++
		case strings.HasPrefix(w.lit, "-") && !strings.HasPrefix(w.lit, "--") && strings.Contains(w.lit, "c"):
			if i+2 != len(words) || !words[i+1].fixed {
				return "", entryError(entry, "the command behind "+w.lit+" must be one quoted text without variables, and nothing may follow it")
			}
			line, err := launchLine(words[i+1].lit)
			return text(entry, words[:i+1]) + " " + shellwords.Quote(line) + ` sh "$1" "$2" "$3"`, err
		case !strings.HasPrefix(w.lit, "-"):
			return "", entryError(entry, "it runs a script of the shell")
		}
	}
	return "", entryError(entry, "it runs a shell without a command")
}

// runner rewrites the command behind `uv run`.
func runner(entry, name string, words []token) (string, error) {
	valued := strings.Fields(runners[name])
	run := -1
	for i := 1; i < len(words); i++ {
		w := words[i].lit
		switch {
		case run < 0 && w == "run":
			run = i
		case strings.HasPrefix(w, "-") && w != "-m":
			if slices.Contains(valued, w) {
				i++
			}
		case run < 0:
			return viaLaunch + text(entry, words), nil
		default:
			before := text(entry, words[:i]) + " "
			if name == "conda" || name == "mamba" { // by default they keep the output back, and the input closed
				before = text(entry, words[:run+1]) + " --no-capture-output " + text(entry, words[run+1:i]) + " "
			}
			if w == "-m" || strings.HasSuffix(w, ".py") && name == "uv" {
				return before + "python" + underShim + " " + text(entry, words[i:]), nil
			}
			line, err := program(entry, words[i:])
			return before + line, err
		}
	}
	return "", entryError(entry, "no program is named behind "+name)
}

// python rewrites INTERPRETER [FLAGS] {-m MODULE | -c CODE | SCRIPT} ARGS. A
// debugger the command itself names (python -m pdb x.py) is left out.
func python(entry string, words []token) (string, error) {
	front := entry[words[0].start:words[0].end]
	for i := 1; i < len(words); i++ {
		w, raw := words[i].lit, entry[words[i].start:words[i].end]
		if !strings.HasPrefix(w, "-") {
			return front + underShim + " " + text(entry, words[i:]), nil
		}
		if w == "-" {
			return "", entryError(entry, "a program read from standard input cannot be debugged")
		}
		at := strings.IndexAny(w, "mcWX")
		if strings.HasPrefix(w, "--") || at < 0 {
			if w == "-i" || w == "-V" || w == "-h" || strings.HasPrefix(w, "--") && w != "--check-hash-based-pycs" {
				return "", entryError(entry, w+" makes no sense under a debugger")
			}
			if w == "--check-hash-based-pycs" && i+1 < len(words) {
				raw += " " + text(entry, words[i+1:i+2])
				i++
			}
			front += " " + raw
			continue
		}
		if w[at] == 'W' || w[at] == 'X' {
			front += " " + raw
			if at == len(w)-1 && i+1 < len(words) { // its value is the next word
				i++
				front += " " + text(entry, words[i:i+1])
			}
			continue
		}
		return pythonTarget(entry, front, w, at, words[i+1:])
	}
	return "", entryError(entry, "it names no module and no script")
}

// pythonTarget rewrites flag (a cluster like -um, whose letter at at is m or c)
// and what follows it.
func pythonTarget(entry, front, flag string, at int, rest []token) (string, error) {
	if at > 1 {
		front += " " + flag[:at]
	}
	value, args := flag[at+1:], rest
	var shown string
	if value == "" {
		if len(rest) == 0 {
			return "", entryError(entry, "-"+flag[at:]+" needs a value")
		}
		value, shown, args = rest[0].lit, text(entry, rest[:1]), rest[1:]
	} else {
		shown = shellwords.Quote(value)
	}
	if flag[at] == 'm' && (value == "pdb" || value == "ipdb") {
		if len(args) > 1 && args[0].lit == "-c" {
			args = args[2:]
		}
		if len(args) == 0 {
			return "", entryError(entry, "it names no program to debug")
		}
		return front + underShim + " " + text(entry, args), nil
	}
	if why := elsewhere[value]; flag[at] == 'm' && why != "" {
		return "", entryError(entry, why)
	}
	line := front + underShim + " -" + flag[at:at+1] + " " + shown
	if len(args) > 0 {
		line += " " + text(entry, args)
	}
	return line, nil
}
