package pdb

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)

// launchLine rewrites a shell line so that the Python program at its end runs under the shim.
// Everything before the program (cd, exports, assignments, `uv run`) and all its arguments
// stay as written, for the shell to expand. The error is for the model: it says what to pass
// instead.
func launchLine(entrypoint string) (string, error) {
	tokens, err := shellTokens(entrypoint)
	if err != nil {
		return "", entryError(entrypoint, "it is not a shell command: "+err.Error())
	}
	prefix, words, err := lastCommand(entrypoint, tokens)
	if err != nil {
		return "", err
	}
	first := 0
	for first < len(words) && assignment.MatchString(entrypoint[words[first].start:words[first].end]) {
		first++
	}
	assigns := text(entrypoint, words[:first])
	run, err := program(entrypoint, words[first:])
	if err != nil {
		return "", err
	}
	if assigns != "" {
		assigns += " "
	}
	return prefix + assigns + "exec " + run, nil
}

// lastCommand returns the words of the last simple command, and the lines before it. These get
// no standard input, because the debugger reads its commands there.
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
			return "", nil, entryError(entry, "subshells and here-documents are not possible here")
		case "|", "|&", "||", "&":
			return "", nil, entryError(entry, "pipes, || and & are not possible here")
		default:
			return "", nil, entryError(entry, "redirections are not possible here; "+
				"the program's output is shown and its standard input is empty")
		}
	}
	for _, t := range tokens[start:end] {
		if !t.op {
			words = append(words, t)
		}
	}
	if len(words) == 0 {
		return "", nil, entryError(entry, "it is empty")
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

// runners start a command in an environment of their own, as in `uv run pytest`. The listed
// options take a value.
var runners = map[string]string{
	"uv": "--with --with-editable --with-requirements --python -p --extra --group --directory --project --package " +
		"--env-file --index --no-extra --no-group --only-group --index-url --default-index --find-links -f --cache-dir --config-file --color",
	"poetry": "-C --directory -P --project",
	"pipenv": "", "pdm": "-p --project", "rye": "", "hatch": "-e --env",
	"conda": condaOptions, "mamba": condaOptions, "micromamba": condaOptions + " -r --root-prefix -a --attach -e --env --rc-file",
}

// wrappers run the command after their options. The listed options take a value.
var wrappers = map[string]string{
	"env":      "-u --unset -C --chdir",
	"nice":     "-n --adjustment",
	"stdbuf":   "-i -o -e --input --output --error",
	"xvfb-run": "-n --server-num -s --server-args -e --error-file -f --auth-file -p --xauth-protocol -w --wait",
}

// program rewrites the words of the command that starts the program.
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

// wrapped rewrites a command that runs the one after its options and assignments.
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
	return "", entryError(entry, "there is no command after "+words[0].lit)
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
				return "", entryError(entry, "the command after "+w.lit+" must be one quoted text without variables, and nothing may follow it")
			}
			line, err := launchLine(words[i+1].lit)
			return text(entry, words[:i+1]) + " " + shellwords.Quote(line) + ` sh "$1" "$2" "$3"`, err
		case !strings.HasPrefix(w.lit, "-"):
			return "", entryError(entry, "it runs a script of the shell")
		}
	}
	return "", entryError(entry, "it runs a shell without a command")
}

// runner rewrites the command after `uv run`.
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
			if name == "conda" || name == "mamba" { // by default they buffer the output and close the input
				before = text(entry, words[:run+1]) + " --no-capture-output " + text(entry, words[run+1:i]) + " "
			}
			if w == "-m" || strings.HasSuffix(w, ".py") && name == "uv" {
				return before + "python" + underShim + " " + text(entry, words[i:]), nil
			}
			line, err := program(entry, words[i:])
			return before + line, err
		}
	}
	return "", entryError(entry, "no program is named after "+name)
}
