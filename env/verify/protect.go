package verify

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// protector reports which files always come from the base tree: the task's test files, the files
// that its test ids name (except doctests, which are part of the program), and the scripts that
// its entrypoint runs.
func protector(t schemas.Task, spec schemas.TestSpec, base []workspace.File) func(string) bool {
	exact := map[string]bool{}
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass) {
		if file, test, ok := strings.Cut(id, "::"); ok {
			name, _, _ := strings.Cut(test, "[")
			exact[file] = exact[file] || !strings.Contains(name, ".")
			continue
		}
		for dotted := id; dotted != ""; { // unittest: module.Class.test
			dotted = dotted[:max(strings.LastIndexByte(dotted, '.'), 0)]
			exact[strings.ReplaceAll(dotted, ".", "/")+".py"] = true
		}
	}
	modes := map[string]uint32{}
	for _, f := range base {
		modes[f.Path] = f.Mode
	}
	last := ""
	for _, word := range commandWords(t, spec) {
		switch mode := modes[word]; {
		case word == "make":
			exact["Makefile"], exact["makefile"], exact["GNUmakefile"] = true, true, true
		case mode == 0:
		case strings.HasSuffix(word, ".py"):
			// If the exit code decides, it may be the program itself: see repository.
			// pytest also gets program files whose docstrings contain the tests.
			run := strings.HasPrefix(path.Base(last), "python")
			exact[word] = exact[word] || spec.Method == schemas.VerifyUnittest || spec.Method == schemas.VerifyPytest && run
		default:
			exact[word] = exact[word] || mode == workspace.ModeExec || strings.HasSuffix(word, ".sh")
		}
		last = word
	}
	return func(file string) bool {
		return exact[file] || slices.ContainsFunc(spec.Files, func(p string) bool { return matches(p, file) })
	}
}

// commandWords are the words of a task's command lines, with paths relative to the workspace.
func commandWords(t schemas.Task, spec schemas.TestSpec) []string {
	words := strings.FieldsFunc(t.Entrypoint+" "+spec.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()\"'", r) })
	for i, word := range words {
		words[i] = path.Clean(strings.TrimPrefix(word, t.Workdir+"/"))
	}
	return words
}

// layout reads what the base tree of a task says about its tests.
func layout(t schemas.Task, spec schemas.TestSpec, base []workspace.File, text content, gold []string) *repository {
	files := make([]string, len(base))
	for i, f := range base {
		files[i] = f.Path
	}
	var listed, scripts []string
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass, slices.Sorted(maps.Keys(spec.Expected))) {
		file, test, ok := strings.Cut(id, "::")
		if name, _, _ := strings.Cut(test, "["); ok && !strings.Contains(name, ".") && slices.Contains(files, file) {
			listed = append(listed, file)
		}
	}
	last := ""
	for _, word := range commandWords(t, spec) {
		for _, file := range []string{word, strings.ReplaceAll(word, ".", "/") + ".py", strings.ReplaceAll(word, ".", "/") + "/__main__.py"} {
			if spec.Method == schemas.VerifyExitCode && strings.HasSuffix(file, ".py") && slices.Contains(files, file) && (file == word || last == "-m") {
				scripts = append(scripts, file)
			}
		}
		last = word
	}
	return newRepository(files, text, listed, scripts, gold)
}
