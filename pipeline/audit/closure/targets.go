package closure

import "strings"

// targets are the places that an agent could look at next: the functions whose first lines were
// displayed, and the files that were named.
type targets struct {
	places []target
	hashes [][4]uint64 // of each place: file as a path, file in a trace, name as a word, name in a trace
	known  map[target]bool
}

// target is a function, or a file if line is 0.
type target struct {
	file string // last element of its path
	line int    // of the function's first line
	name string // of the function
}

func newTargets() targets { return targets{known: map[target]bool{}} }

func (t *targets) add(p target) {
	if !t.known[p] {
		t.known[p] = true
		t.places = append(t.places, p)
		stem := strings.TrimSuffix(p.file, ".py")
		t.hashes = append(t.hashes, [4]uint64{hash(pathSeed, p.file), hash(traceSeed, stem), hash(wordSeed, p.name), hash(traceSeed, p.name)})
	}
}

func (t *targets) file(name string) {
	if strings.HasSuffix(name, ".py") {
		t.add(target{file: name})
	}
}

// define adds the function that a displayed line begins.
func (t *targets) define(file string, n int, text string) {
	text = strings.TrimPrefix(strings.TrimLeft(text, " \t"), "async ")
	name, isFunction := strings.CutPrefix(text, "def ")
	if !isFunction {
		var isClass bool
		if name, isClass = strings.CutPrefix(text, "class "); !isClass {
			return
		}
	}
	end := 0
	for end < len(name) && classes[name[end]]&(letter|digit) != 0 {
		end++
	}
	t.add(target{file, n, name[:end]})
}

// at returns the function that a line belongs to as far as is known, or the file.
func (t *targets) at(file string, line int) target {
	best := target{file: file}
	for _, p := range t.places {
		if p.file == file && p.line <= line && p.line > best.line {
			best = p
		}
	}
	return best
}
