package pdb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// bootstrap is what the interpreter runs (-c): it reads the shim from standard
// input, so nothing is written into the sandbox. It is one line: wrappers that
// quote their arguments once more (conda run) may lose a line's end. The parts of
// the shim are compiled one by one: what the compiler needs for all at once, 1.4 MB,
// would stay with the program.
const bootstrap = `exec("import os\nh=b''\nwhile len(h)<8:h+=os.read(0,8-len(h))\nn,s=int(h),b''\n` +
	`while len(s)<n:s+=os.read(0,n-len(s))\n` +
	`g={'__name__':'<pdb shim>','__builtins__':dict(vars(__import__('builtins')))}\n` +
	`while s:\n p,_,s=s.partition(bytes(1))\n exec(compile(p,'<pdb shim>','exec'),g)")`

// In a launch line $1 is the bootstrap, $2 the text of shim/launch.sh and $3 the
// workspace.
const (
	underShim = ` -u -c "$1" "$3"`
	viaLaunch = `bash -c "$2" sh "$1" "$3" `
)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)

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
