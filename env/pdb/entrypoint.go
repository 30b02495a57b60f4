package pdb

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)

// launchLine rewrites a shell line so that the Python program at its end runs under the shim. It
// does not change the arguments or the part before the program (cd, exports, assignments,
// `uv run`), so the shell still expands them. The error is shown to the model and says what to
// pass instead.
func launchLine(entrypoint string) (string, error) {
	tokens, err := shellTokens(entrypoint)
	if err != nil {
		return "", entrypointError(entrypoint, "it is not a shell command: "+err.Error())
	}
	prefix, words, err := lastCommand(entrypoint, tokens)
	if err != nil {
		return "", err
	}
	first := 0
	for first < len(words) && assignment.MatchString(entrypoint[words[first].start:words[first].end]) {
		first++
	}
	assignments := wordsText(entrypoint, words[:first])
	run, err := rewriteProgram(entrypoint, words[first:])
	if err != nil {
		return "", err
	}
	if assignments != "" {
		assignments += " "
	}
	return prefix + assignments + "exec " + run, nil
}

// lastCommand returns the words of the last simple command, and in prefix the commands before it
// with an empty standard input, because the debugger receives its commands on standard input.
func lastCommand(entry string, tokens []token) (prefix string, words []token, err error) {
	end := len(tokens)
	for end > 0 && tokens[end-1].op && (tokens[end-1].lit == ";" || tokens[end-1].lit == "\n") {
		end--
	}
	start := 0
	for i, t := range tokens[:end] {
		if !t.op {
			continue
		}
		switch t.lit {
		case "&&", ";", "\n":
			start = i + 1
		case "2>&1", ">&2", "1>&2":
		case "(", ")", "<<", ";;":
			return "", nil, entrypointError(entry, "subshells and here-documents are not possible here")
		case "|", "|&", "||", "&":
			return "", nil, entrypointError(entry, "pipes, || and & are not possible here")
		default:
			return "", nil, entrypointError(entry, "redirections are not possible here; "+
				"the program's output is shown and its standard input is empty")
		}
	}
	for _, t := range tokens[start:end] {
		if !t.op {
			words = append(words, t)
		}
	}
	if len(words) == 0 {
		return "", nil, entrypointError(entry, "it is empty")
	}
	if start > 0 && slices.ContainsFunc(tokens[:start], func(t token) bool { return !t.op }) {
		sep := tokens[start-1]
		prefix = "{ " + strings.Trim(entry[:sep.start], " \t\n") + "\n} </dev/null " + sep.lit + " "
		if sep.lit == "\n" {
			prefix = strings.TrimSuffix(prefix, " \n ") + "\n"
		}
	}
	return prefix, words, nil
}

const condaOptions = "-n --name -p --prefix --cwd"

// runners are programs that start a command in a Python environment, as in `uv run pytest`. The
// listed options take a value.
var runners = map[string]string{
	"uv": "--with --with-editable --with-requirements --python -p --extra --group --directory --project --package " +
		"--env-file --index --no-extra --no-group --only-group --index-url --default-index --find-links -f --cache-dir --config-file --color",
	"poetry": "-C --directory -P --project",
	"pipenv": "", "pdm": "-p --project", "rye": "", "hatch": "-e --env",
	"conda": condaOptions, "mamba": condaOptions, "micromamba": condaOptions + " -r --root-prefix -a --attach -e --env --rc-file",
}

// wrappers are programs that run the command after their options. The listed options take a value.
var wrappers = map[string]string{
	"env":      "-u --unset -C --chdir",
	"nice":     "-n --adjustment",
	"stdbuf":   "-i -o -e --input --output --error",
	"xvfb-run": "-n --server-num -s --server-args -e --error-file -f --auth-file -p --xauth-protocol -w --wait",
}

// rewriteProgram rewrites the command that starts the program.
func rewriteProgram(entry string, words []token) (string, error) {
	if len(words) == 0 {
		return "", entrypointError(entry, "there is no command in it")
	}
	head := words[0]
	name := path.Base(head.lit)
	switch {
	case !head.fixed:
		return launchPrefix + wordsText(entry, words), nil
	case interpreter.MatchString(name):
		return rewritePython(entry, words)
	case name == "exec" || name == "command" || name == "time" || name == "nohup":
		return rewriteProgram(entry, words[1:])
	case name == "timeout":
		return rewriteProgram(entry, skipTimeout(words))
	case name == "bash" || name == "sh" || name == "dash":
		return rewriteShell(entry, words)
	case undebuggable[name] != "":
		return "", entrypointError(entry, undebuggable[name])
	case slices.Contains([]string{"if", "for", "while", "until", "case", "done", "fi", "esac", "{", "}", "[[", "function"}, name):
		return "", entrypointError(entry, "loops, conditions and functions of the shell are not possible here")
	}
	if valued, ok := wrappers[name]; ok {
		return rewriteWrapped(entry, strings.Fields(valued), words)
	}
	if _, ok := runners[name]; ok && len(words) > 1 {
		return rewriteRunner(entry, name, words)
	}
	return launchPrefix + wordsText(entry, words), nil
}

// rewriteWrapped rewrites the command after a wrapper, its options and assignments.
func rewriteWrapped(entry string, valued []string, words []token) (string, error) {
	for i := 1; i < len(words); i++ {
		w := words[i].lit
		switch {
		case slices.Contains(valued, w):
			i++
		case strings.HasPrefix(w, "-") || assignment.MatchString(w):
		default:
			run, err := rewriteProgram(entry, words[i:])
			return wordsText(entry, words[:i]) + " " + run, err
		}
	}
	return "", entrypointError(entry, "there is no command after "+words[0].lit)
}

// skipTimeout returns the words after `timeout`, its options and its duration.
func skipTimeout(words []token) []token {
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

// rewriteShell rewrites the text of `bash -lc 'TEXT'`.
func rewriteShell(entry string, words []token) (string, error) {
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w.lit == "-o" || w.lit == "-O":
			i++
		case strings.HasPrefix(w.lit, "-") && !strings.HasPrefix(w.lit, "--") && strings.Contains(w.lit, "c"):
			if i+2 != len(words) || !words[i+1].fixed {
				return "", entrypointError(entry, "the command after "+w.lit+" must be one quoted text without variables, and nothing may follow it")
			}
			line, err := launchLine(words[i+1].lit)
			return wordsText(entry, words[:i+1]) + " " + shellwords.Quote(line) + ` sh "$1" "$2" "$3"`, err
		case !strings.HasPrefix(w.lit, "-"):
			return "", entrypointError(entry, "it runs a script of the shell")
		}
	}
	return "", entrypointError(entry, "it runs a shell without a command")
}

// rewriteRunner rewrites the command after a runner such as `uv run`.
func rewriteRunner(entry, name string, words []token) (string, error) {
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
			return launchPrefix + wordsText(entry, words), nil
		default:
			before := wordsText(entry, words[:i]) + " "
			if name == "conda" || name == "mamba" { // by default they buffer the output and close the input
				before = wordsText(entry, words[:run+1]) + " --no-capture-output " + wordsText(entry, words[run+1:i]) + " "
			}
			if w == "-m" || strings.HasSuffix(w, ".py") && name == "uv" {
				return before + "python" + shimArgs + " " + wordsText(entry, words[i:]), nil
			}
			line, err := rewriteProgram(entry, words[i:])
			return before + line, err
		}
	}
	return "", entrypointError(entry, "no program is named after "+name)
}
