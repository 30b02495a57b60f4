package pdb

import (
	"fmt"
	"strings"
)

// bootstrap is the code that the interpreter runs with -c. It reads the shim from standard input,
// so that the sandbox contains no file of the debugger. It is a single line because wrappers that
// quote their arguments again, such as conda run, may lose newlines. It compiles the parts of the
// shim one by one to save memory: compiling them all at once takes 1.4 MB, which the process would
// not give back.
const bootstrap = `exec("import os\nh=b''\nwhile len(h)<8:h+=os.read(0,8-len(h))\nn,s=int(h),b''\n` +
	`while len(s)<n:s+=os.read(0,n-len(s))\n` +
	`g={'__name__':'<pdb shim>','__builtins__':dict(vars(__import__('builtins')))}\n` +
	`while s:\n p,_,s=s.partition(bytes(1))\n exec(compile(p,'<pdb shim>','exec'),g)")`

// Parts of a launch line, in which $1 is bootstrap, $2 is the content of shim/launch.sh and $3 is
// the workspace.
const (
	shimArgs     = ` -u -c "$1" "$3"`
	launchPrefix = `bash -c "$2" sh "$1" "$3" `
)

// entrypointError returns an error, to be shown to the model, about an entrypoint that cannot be
// debugged.
func entrypointError(entrypoint, why string) error {
	return fmt.Errorf("pdb cannot run the entrypoint %q: %s. Pass one Python command, such as: "+
		"python -m pytest tests/test_x.py", entrypoint, why)
}

// wordsText returns words as written in the entrypoint.
func wordsText(entry string, words []token) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = entry[w.start:w.end]
	}
	return strings.Join(parts, " ")
}
