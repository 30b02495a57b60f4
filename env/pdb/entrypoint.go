package pdb

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// bootstrap is what the interpreter runs (-c): it reads the shim from standard
// input, so nothing is written into the sandbox.
const bootstrap = `import os
h=b""
while len(h)<8:h+=os.read(0,8-len(h))
n,s=int(h),b""
while len(s)<n:s+=os.read(0,n-len(s))
exec(compile(s,"<pdb shim>","exec"),{"__name__":"<pdb shim>","__builtins__":__builtins__})
`

// In a launch line $0 is the bootstrap, $1 the text of shim/launch.sh and $2 the
// workspace.
const (
	underShim = ` -u -c "$0" "$2"`
	viaLaunch = `bash -c "$1" "$0" "$2" `
)

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
	interpreter = regexp.MustCompile(`^(?:python|pypy)[0-9.]*[dmt]?$`)
)

// launchLine rewrites a shell line so that the Python program it ends in runs
// under the shim: everything before the program (cd, exports, assignments,
// `uv run`) and all its arguments stay as they were written, for the shell to
// expand. The error is for the model: it says what to pass instead.
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

func entryError(entrypoint, why string) error {
	return fmt.Errorf("pdb cannot run the entrypoint %q: %s. Pass one Python command, such as: "+
		"python -m pytest tests/test_x.py", entrypoint, why)
}

// lastCommand returns the words of the last simple command and the lines before
// it, which get no standard input: that is the debugger's.
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

func text(entry string, words []token) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = entry[w.start:w.end]
	}
	return strings.Join(parts, " ")
}

// runners start their argument in an environment of their own; the options
// listed take a value.
var runners = map[string]string{
	"uv":     "--with --with-editable --with-requirements --python -p --extra --group --directory --project --package --env-file --index",
	"poetry": "-C --directory -P --project",
	"pipenv": "", "pdm": "-p --project", "rye": "", "hatch": "-e --env",
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
	case name == "env" || name == "xvfb-run" || name == "nice":
		return wrapped(entry, words)
	case name == "coverage":
		return "", entryError(entry, "coverage and a debugger cannot trace the same program")
	}
	if _, ok := runners[name]; ok && len(words) > 1 {
		return runner(entry, name, words)
	}
	return viaLaunch + text(entry, words), nil
}

// wrapped keeps a command that runs its arguments, up to the interpreter.
func wrapped(entry string, words []token) (string, error) {
	for i, w := range words {
		if i > 0 && w.fixed && interpreter.MatchString(path.Base(w.lit)) {
			run, err := python(entry, words[i:])
			return text(entry, words[:i]) + " " + run, err
		}
	}
	return "", entryError(entry, "no Python interpreter is named behind "+words[0].lit)
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

// runner rewrites `uv run pytest`: the tool's own python looks the command up.
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
			before, rest := text(entry, words[:i])+" ", words[i:]
			switch {
			case words[i].fixed && interpreter.MatchString(path.Base(w)):
				line, err := python(entry, rest)
				return before + line, err
			case w == "-m" || strings.HasSuffix(w, ".py"):
				return before + "python" + underShim + " " + text(entry, rest), nil
			}
			return before + "python" + underShim + " --command " + text(entry, rest), nil
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
		shown = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
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
	if flag[at] == 'm' && value == "coverage" {
		return "", entryError(entry, "coverage and a debugger cannot trace the same program")
	}
	line := front + underShim + " -" + flag[at:at+1] + " " + shown
	if len(args) > 0 {
		line += " " + text(entry, args)
	}
	return line, nil
}
