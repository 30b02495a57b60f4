package verify

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// newProtector returns a function that reports whether a file always comes from the base tree. These
// are the task's test files, the files that its test ids name (except doctests, which are part of
// the program), and the scripts that its entrypoint runs.
func newProtector(t schemas.Task, spec schemas.TestSpec, base []workspace.File) func(string) bool {
	protected := map[string]bool{}
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass) {
		if file, test, ok := strings.Cut(id, "::"); ok {
			name, _, _ := strings.Cut(test, "[")
			protected[file] = protected[file] || !strings.Contains(name, ".")
			continue
		}
		isTest := strings.HasPrefix(id[strings.LastIndexByte(id, '.')+1:], "test") // and not a doctest, module.name
		for dotted := id; dotted != ""; {                                          // unittest: module.Class.test
			dotted = dotted[:max(strings.LastIndexByte(dotted, '.'), 0)]
			file := strings.ReplaceAll(dotted, ".", "/") + ".py"
			protected[file] = protected[file] || isTest || schemas.IsTest(file) || strings.HasPrefix(path.Base(file), "test")
		}
	}
	modes := map[string]uint32{}
	for _, f := range base {
		modes[f.Path] = f.Mode
	}
	previous := ""
	for _, word := range commandWords(t, spec) {
		switch mode := modes[word]; {
		case word == "make":
			protected["Makefile"], protected["makefile"], protected["GNUmakefile"] = true, true, true
		case mode == 0:
		case strings.HasSuffix(word, ".py"):
			// If the exit code decides, the script may be the program itself, and repoLayout
			// decides. With pytest, it may be a program file with tests in its docstrings,
			// unless python runs it.
			run := strings.HasPrefix(path.Base(previous), "python")
			protected[word] = protected[word] || spec.Method == schemas.VerifyUnittest || spec.Method == schemas.VerifyPytest && run
		default:
			protected[word] = protected[word] || mode == workspace.ModeExec || strings.HasSuffix(word, ".sh")
		}
		previous = word
	}
	return func(file string) bool {
		return protected[file] || slices.ContainsFunc(spec.Files, func(p string) bool { return matches(p, file) })
	}
}

// commandWords returns the words of a task's command lines, with paths relative to the workspace.
func commandWords(t schemas.Task, spec schemas.TestSpec) []string {
	words := strings.FieldsFunc(t.Entrypoint+" "+spec.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()\"'", r) })
	for i, word := range words {
		words[i] = path.Clean(strings.TrimPrefix(word, t.Workdir+"/"))
	}
	return words
}

// readLayout determines which files of a task's base tree belong to its tests. gold are the files that
// the gold patch changes.
func readLayout(t schemas.Task, spec schemas.TestSpec, base []workspace.File, text textFunc, gold []string) *repoLayout {
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
	previous := ""
	for _, word := range commandWords(t, spec) {
		for _, file := range []string{word, strings.ReplaceAll(word, ".", "/") + ".py", strings.ReplaceAll(word, ".", "/") + "/__main__.py"} {
			if spec.Method == schemas.VerifyExitCode && strings.HasSuffix(file, ".py") && slices.Contains(files, file) && (file == word || previous == "-m") {
				scripts = append(scripts, file)
			}
		}
		previous = word
	}
	return newRepoLayout(files, text, listed, scripts, gold)
}
