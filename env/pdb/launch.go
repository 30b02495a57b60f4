package pdb

import (
	"fmt"
	"strings"
)

// bootstrap is the code that the interpreter runs (-c). It reads the shim from standard input,
// so that nothing is written into the sandbox. It is one line, because wrappers that quote
// their arguments again (conda run) may lose newlines. It compiles the parts of the shim one
// by one, because the memory for all of them at once, 1.4 MB, would stay with the program.
const bootstrap = `exec("import os\nh=b''\nwhile len(h)<8:h+=os.read(0,8-len(h))\nn,s=int(h),b''\n` +
	`while len(s)<n:s+=os.read(0,n-len(s))\n` +
	`g={'__name__':'<pdb shim>','__builtins__':dict(vars(__import__('builtins')))}\n` +
	`while s:\n p,_,s=s.partition(bytes(1))\n exec(compile(p,'<pdb shim>','exec'),g)")`

// In a launch line $1 is the bootstrap, $2 the content of shim/launch.sh and $3 the workspace.
const (
	underShim = ` -u -c "$1" "$3"`
	viaLaunch = `bash -c "$2" sh "$1" "$3" `
)

// entryError is the error of an entrypoint that cannot be debugged, for the model.
func entryError(entrypoint, why string) error {
	return fmt.Errorf("pdb cannot run the entrypoint %q: %s. Pass one Python command, such as: "+
		"python -m pytest tests/test_x.py", entrypoint, why)
}

// text is the text of some words, as written in the entrypoint.
func text(entry string, words []token) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = entry[w.start:w.end]
	}
	return strings.Join(parts, " ")
}
