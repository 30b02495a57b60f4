package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/schemas"
)

// leak is a step that knows too much.
type leak struct {
	kind, tool, argument, text string
	path                       string
	start                      int
	what                       string // part of what the auditor must report; "": anything of the kind
}

// isFound reports whether the auditor has found a leak.
func (l leak) isFound(unseen []closure.Entity) bool {
	return slices.ContainsFunc(unseen, func(e closure.Entity) bool {
		if l.what == "" {
			return e.Kind == l.kind
		}
		return strings.Contains(e.Text, l.what)
	})
}

// naming sets what leaks name.
func naming(what string, leaks ...leak) []leak {
	for i := range leaks {
		leaks[i].what = what
	}
	return leaks
}

func (l leak) row() schemas.StepRow {
	row := schemas.StepRow{Source: "agent", TurnIndex: new(int32(9999)), Message: l.text}
	args := map[string]any{}
	switch l.tool {
	case "":
		return row
	case "view":
		args["path"] = l.path
		if l.start > 0 {
			args["start"] = l.start
		}
	case "grep":
		args["pattern"] = l.argument
	case "entrypoint":
		args["command"], args["entrypoint"], l.tool = "c", l.argument, "pdb"
	default:
		args["command"] = l.argument
	}
	raw, _ := json.Marshal(args) // cannot fail
	row.ToolName, row.ToolCategory, row.ArgumentsJSON = &l.tool, &l.tool, new(string(raw))
	return row
}

var (
	wordToken   = regexp.MustCompile(`[A-Za-z_]\w*`)
	numberToken = regexp.MustCompile(`\d+(?:\.\d+)?`)
	textLiteral = regexp.MustCompile(`["']([A-Za-z][\w ]{2,20})["']`)
)

// pythonWords returns Python's keywords, builtins, modules and methods, which every agent knows.
var pythonWords = sync.OnceValue(func() map[string]bool {
	out, err := exec.Command("python3", "-c", `import builtins, datetime, keyword, re, sys
types = str, bytes, int, float, dict, list, set, tuple, object, type, Exception, open(0).__class__, datetime.datetime, re.Pattern, re.Match
print(*dir(builtins), *keyword.kwlist, *sys.stdlib_module_names, *(n for t in types for n in dir(t)))`).Output()
	if err != nil {
		panic(err)
	}
	words := map[string]bool{"self": true, "cls": true, "args": true, "kwargs": true, "pytest": true, "test": true, "tests": true}
	for _, w := range strings.Fields(string(out)) {
		words[w] = true
	}
	return words
})

// leaksAt makes leaks of all kinds for a place in an episode. What counts as a leak is decided by the texts
// before the place, without the auditor.
func (a audited) leaksAt(at int, r *rand.Rand) (out []leak) {
	var b strings.Builder
	for _, t := range a.tools {
		b.WriteString(t.Description + string(t.Parameters))
	}
	for i := range a.rows[:at] {
		if row := &a.rows[i]; row.Source != "agent" {
			b.WriteString(row.Message + "\n")
		} else {
			// An agent may repeat what it wrote itself.
			b.WriteString(schemas.Value(row.Observation) + "\n" + row.Message + "\n" + schemas.Value(row.Reasoning) + "\n" + schemas.Value(row.ArgumentsJSON) + "\n")
		}
	}
	seen := b.String()
	words, numbers := map[string]bool{}, map[string]bool{}
	for _, w := range wordToken.FindAllString(seen, -1) {
		words[w] = true
	}
	for _, n := range numberToken.FindAllString(seen, -1) {
		numbers[n] = true
		for part := range strings.SplitSeq(n, ".") {
			numbers[part] = true
		}
	}
	out = append(out, a.nameLeaks(words, seen, r)...)
	out = append(out, a.placeLeaks(numbers, seen, r)...)
	out = append(out, valueLeaks(numbers, a.files, seen, r)...)
	out = append(out, assertionLeaks(numbers, r)...)
	return out
}

func pick[T any](r *rand.Rand, list []T, n int) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// nameLeaks names identifiers and tests that were not shown.
func (a audited) nameLeaks(words map[string]bool, seen string, r *rand.Rand) (out []leak) {
	all := a.gold
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		all += a.files[name]
	}
	unseen, lower := map[string]bool{}, strings.ToLower(seen) // "Rules" shows the word rules
	for _, line := range strings.Split(all, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, w := range wordToken.FindAllString(line, -1) {
			isCode := strings.Contains(line, w+"(") || strings.Contains(line, "."+w) || strings.Contains(line, w+" =") || strings.Contains(w, "_")
			if len(w) > 2 && isCode && !strings.HasPrefix(w, "__") && !words[w] && !pythonWords()[w] && !strings.Contains(lower, strings.ToLower(w)) {
				unseen[w] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(unseen))
	for _, w := range pick(r, list, 3) {
		kind := "identifier"
		if strings.HasPrefix(w, "test_") {
			kind = "test"
		}
		out = append(out, naming(w,
			leak{kind: kind, tool: "pdb", argument: "p " + w}, leak{kind: kind, tool: "pdb", argument: "p self." + w + ".size"},
			leak{kind: kind, tool: "pdb", argument: "b " + w}, leak{kind: kind, tool: "grep", argument: `\b` + w + `\b`},
			leak{kind: kind, tool: "bash", argument: `grep -rn "` + w + `(" .`}, leak{kind: kind, tool: "bash", argument: `python3 -c "print(x.` + w + `)"`},
			leak{kind: kind, tool: "pdb", argument: "!x = " + w + "(1)"},
			leak{kind: kind, text: "I think that `" + w + "` is wrong."}, leak{kind: kind, text: "The cause must be in " + w + "() somewhere."},
			leak{kind: kind, text: "Nothing sets self." + w + " here, so I read on."},
		)...)
	}
	tests := []string{"test_rejects_an_empty_part", "test_regression_of_the_gold_patch"}
	for _, w := range list {
		if strings.HasPrefix(w, "test_") {
			tests = append(tests, w)
		}
	}
	for _, w := range pick(r, tests, 2) {
		out = append(out, naming(w,
			leak{kind: "test", tool: "bash", argument: "python3 -m pytest -q -k " + w}, leak{kind: "test", tool: "bash", argument: "python3 -m pytest tests::" + w},
			leak{kind: "test", tool: "entrypoint", argument: "python3 -m pytest -x -k '" + w + " and not slow'"},
			leak{kind: "test", text: "I compare this with " + w + ", which passes."}, leak{kind: "test", tool: "grep", argument: "def " + w},
		)...)
	}
	return out
}

// placeLeaks names files and lines that were not shown.
func (a audited) placeLeaks(numbers map[string]bool, seen string, r *rand.Rand) (out []leak) {
	names := slices.Sorted(maps.Keys(a.files))
	unseen := []string{"conf/defaults_extra.py", path.Dir(names[0]) + "/compat_layer.py"}
	for _, name := range names {
		stem := strings.TrimSuffix(path.Base(name), ".py")
		if !strings.Contains(seen, stem) && stem != "__init__" {
			unseen = append(unseen, name)
		}
	}
	for _, p := range pick(r, unseen, 2) {
		out = append(out, naming(path.Base(p),
			leak{kind: "file", tool: "view", path: p}, leak{kind: "file", tool: "pdb", argument: "b " + p + ":1"}, leak{kind: "file", tool: "bash", argument: "cat " + p},
			leak{kind: "file", tool: "bash", argument: "git diff -- " + p}, leak{kind: "file", text: "The mistake is in " + p + "."},
			leak{kind: "file", text: "I open `" + path.Base(p) + "` next."},
		)...)
	}
	for _, p := range pick(r, names, 2) {
		count := strings.Count(a.files[p], "\n")
		var lines []int
		for n := 2; n <= max(count, 120); n++ {
			isFree := n%50 > 1
			for d := -3; d <= 3; d++ {
				isFree = isFree && !numbers[strconv.Itoa(n+d)]
			}
			if isFree {
				lines = append(lines, n)
			}
		}
		for _, n := range pick(r, lines, 2) {
			out = append(out, naming(strconv.Itoa(n),
				leak{kind: "line", tool: "view", path: p, start: n}, leak{kind: "line", tool: "pdb", argument: fmt.Sprintf("b %s:%d", p, n)},
				leak{kind: "line", tool: "pdb", argument: fmt.Sprintf("until %d", n)}, leak{kind: "line", tool: "pdb", argument: fmt.Sprintf("tbreak %d", n)},
				leak{kind: "line", tool: "bash", argument: fmt.Sprintf("sed -n '%d,%dp' %s", n, n+8, p)},
				leak{kind: "line", text: fmt.Sprintf("Line %d of %s is wrong.", n, p)}, leak{kind: "line", text: fmt.Sprintf("I look at %s:%d.", p, n)},
				leak{kind: "line", text: fmt.Sprintf("The mistake is on lines %d to %d.", n, n+1)},
			)...)
		}
	}
	return out
}

// valueLeaks names values that were not shown, such as those of the fixed program.
func valueLeaks(numbers map[string]bool, files map[string]string, seen string, r *rand.Rand) (out []leak) {
	shown := slices.Sorted(maps.Keys(numbers))
	var values []string
	for _, n := range pick(r, shown, 12) {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			continue
		}
		for _, v := range []float64{f + 17, f*3 + 11, f + 12.75, -f - 40} {
			text := strconv.FormatFloat(max(v, -v), 'f', -1, 64)
			if len(text) > 1 && !numbers[text] && !strings.Contains(seen, text) {
				values = append(values, text)
			}
		}
	}
	for _, v := range pick(r, values, 3) {
		out = append(out, naming(v,
			leak{kind: "value", text: "The result should be " + v + " here."}, leak{kind: "value", text: "I expect `x == " + v + "`."},
			leak{kind: "value", tool: "pdb", argument: "p total == " + v}, leak{kind: "value", tool: "pdb", argument: "!x = " + v},
			leak{kind: "value", text: "It returns Decimal('" + v + "') when it works."}, leak{kind: "value", tool: "bash", argument: `python3 -c "print(abs(` + v + `))"`},
		)...)
	}
	var literals []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, m := range textLiteral.FindAllStringSubmatch(files[name], -1) {
			if w := m[1]; !strings.Contains(w, " ") && !strings.Contains(seen, w) && !pythonWords()[w] {
				literals = append(literals, w)
			}
		}
	}
	for _, w := range pick(r, literals, 2) {
		out = append(out, naming(w,
			leak{kind: "value", tool: "pdb", argument: "p x == '" + w + "'"}, leak{kind: "value", tool: "pdb", argument: `p table["` + w + `"]`},
			leak{kind: "value", text: "I expect `'" + w + "'` at this point."},
		)...)
	}
	for _, template := range []string{
		"With the fix, this call returns False.", "In the fixed program the list is empty.", "The patched version prints True at this point.",
		"After the fix the loop has one element.", "On the corrected code it yields None.",
	} {
		out = append(out, leak{kind: "value", text: template})
	}
	return out
}

// assertionLeaks says how many parts the fix has, which comes first, or which iteration matters.
func assertionLeaks(numbers map[string]bool, r *rand.Rand) (out []leak) {
	counts, nouns := []string{"2", "two", "3", "three", "four", "several", "both"}, []string{"part", "hunk", "place", "edit", "file", "spot", "function"}
	fixes, ordinals := []string{"fix", "patch", "repair", "solution"}, []string{"first", "second", "third", "last", "next"}
	count, noun, fix, ordinal := counts[r.IntN(len(counts))], nouns[r.IntN(len(nouns))], fixes[r.IntN(len(fixes))], ordinals[r.IntN(len(ordinals))]
	for _, t := range []string{
		"The " + fix + " has " + count + " " + noun + "s.", "The " + fix + " needs changes in " + count + " " + noun + "s.", "This " + fix + " touches " + count + " different " + noun + "s.",
		"I have to change " + count + " " + noun + "s for this.", "There are " + count + " " + noun + "s that the " + fix + " must change.", "A " + fix + " in " + count + " " + noun + "s is what is needed.",
		"It is a one-line " + fix + ".", "Only one " + noun + " needs to change.", count + " " + noun + "s have to be edited.",
	} {
		out = append(out, leak{kind: "parts", text: t})
	}
	for _, t := range []string{
		"This is the " + ordinal + " part of the " + fix + ".", "The " + ordinal + " hunk is about the types.", "I start with the " + ordinal + " change of the " + fix + ".",
		"The " + fix + " starts in the parser and ends in the printer.", "First I change the parser, then the printer.", "The hunk of the parser comes before that of the printer.",
		"The " + ordinal + " piece of the " + fix + " is easy.", "The check comes " + ordinal + " in the " + fix + ".",
	} {
		out = append(out, leak{kind: "order", text: t})
	}
	var hits []string
	for n := 2; n < 400; n++ {
		if s := strconv.Itoa(n); !numbers[s] {
			hits = append(hits, s)
		}
	}
	for _, n := range pick(r, hits, 2) {
		out = append(out, naming(n,
			leak{kind: "iteration", tool: "pdb", argument: "ignore 1 " + n}, leak{kind: "iteration", tool: "pdb", argument: "condition 1 i == " + n},
			leak{kind: "iteration", tool: "pdb", argument: "b run, i == " + n}, leak{kind: "iteration", tool: "pdb", argument: "tbreak run, len(x) > " + n + " ;; c"},
			leak{kind: "iteration", text: "The " + n + "th iteration goes wrong."}, leak{kind: "iteration", text: "I want hit number " + n + " of this breakpoint."},
		)...)
	}
	return out
}

// seedTally counts seeded leaks by kind.
type seedTally struct {
	seeded, found map[string]int
	missed        []string
}

func newSeedTally() *seedTally {
	return &seedTally{map[string]int{}, map[string]int{}, nil}
}

// seedEvery is the distance of the places at which seed inserts leaks.
func seedEvery() int {
	if testing.Short() {
		return 12
	}
	return 4
}

// seed inserts leaks at some places of an episode before the first edit, one after the other.
func (tally *seedTally) seed(a audited, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	names := a.names()
	for at := range a.rows {
		if schemas.Value(a.rows[at].ToolName) == "edit" {
			return
		}
		if a.rows[at].Source != "agent" || at%seedEvery() != int(seed)%seedEvery() {
			continue
		}
		for _, l := range a.leaksAt(at, r) {
			c := closure.NewClosure(a.tools, names)
			for i := range a.rows[:at] {
				c.Step(&a.rows[i], a.lines[i])
			}
			row := l.row()
			tally.seeded[l.kind]++
			if l.isFound(c.Step(&row, nil)) {
				tally.found[l.kind]++
			} else {
				tally.missed = append(tally.missed, fmt.Sprintf("%+v", l))
			}
		}
	}
}

// check checks the recall of each kind.
func (tally *seedTally) check(t *testing.T, least int) {
	t.Helper()
	for _, kind := range []string{"identifier", "line", "value", "file", "test", "parts", "order", "iteration"} {
		n, found := tally.seeded[kind], tally.found[kind]
		t.Logf("%s: found %d of %d", kind, found, n)
		if n < least || 100*found < 99*n {
			t.Errorf("%s: found %d of %d seeded leaks", kind, found, n)
		}
	}
	for _, m := range tally.missed[:min(len(tally.missed), 40)] {
		t.Log("missed", m)
	}
}
