package discover

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/verify"
)

// importProbe observes in the interpreter of the tests from where the modules of the checkout are imported.
//
//go:embed imports.py
var importProbe string

// maxImports is the largest size of the probe's output in bytes.
const maxImports = 4 << 20

// probe returns the probe for the modules of the checkout.
func (e *evidence) probe() *verify.Probe {
	return &verify.Probe{Source: importProbe, Config: e.modules(), Limit: maxImports}
}

var identifierPath = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$`)

// modules returns the names under which the files of the checkout can be imported, without those of tests and scripts.
func (e *evidence) modules() []string {
	found := map[string]bool{}
	for _, file := range e.paths {
		stem, isPython := strings.CutSuffix(file, ".py")
		if !isPython || isTest(file) {
			continue
		}
		for _, root := range slices.Concat(sourceRoots, e.roots) {
			rest, below := stem, true
			if root != "" {
				rest, below = strings.CutPrefix(stem, root+"/")
			}
			name := strings.ReplaceAll(strings.TrimSuffix(rest, "/__init__"), "/", ".")
			top, _, _ := strings.Cut(name, ".")
			if below && path.Base(name) != "__init__" && identifierPath.MatchString(name) && !(root == "" && notImported[top]) {
				found[name] = true
			}
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(found))...) // not nil: the probe iterates over it
}

// foreignImport describes a module of the checkout that the tests imported from elsewhere, such as from an installed
// copy. It returns "" if they imported all of them from the checkout. output is the output of the probe.
func foreignImport(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, line := range slices.Backward(lines) { // the last one is complete if the tests ended
		var foreign map[string]string
		if json.Unmarshal([]byte(line), &foreign) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(foreign)) {
			return fmt.Sprintf("the tests import %s from %s and not from the checkout", name, foreign[name])
		}
		return ""
	}
	return ""
}
