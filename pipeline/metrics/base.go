package metrics

import (
	"path"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// baseMap maps lines of files as they are at a step to lines of the files that the task starts with.
type baseMap struct {
	files  map[string]*fileMap
	isLost bool // a command may have changed any file
	Workspace
}

func newBaseMap(w Workspace) *baseMap { return &baseMap{files: map[string]*fileMap{}, Workspace: w} }

// fileMap holds the changes of a file in their order.
type fileMap struct {
	changes []change
	isLost  bool // an unknown part of the file was changed
}

// line returns the line of base that is now line n, or 0 if an edit wrote the line or the line is
// unknown.
func (m *baseMap) line(file string, n int) int {
	f := m.files[file]
	switch {
	case m.isLost || f != nil && f.isLost:
		return 0
	case f == nil:
		return n
	}
	for i := len(f.changes) - 1; i >= 0; i-- {
		switch e := f.changes[i]; {
		case n < e.first:
		case n < e.first+e.added:
			return 0
		default:
			n += e.removed - e.added
		}
	}
	return n
}

func (m *baseMap) file(name string) *fileMap {
	f := m.files[name]
	if f == nil {
		f = &fileMap{}
		m.files[name] = f
	}
	return f
}

// edit is an edit of one file.
type edit struct {
	file  string
	lines []int // lines of base that its changes concern (see change.lines), as far as they are known
}

// apply records the edits of a step and returns them.
func (m *baseMap) apply(r *Reading, row *schemas.StepRow) []edit {
	if row.ToolName == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return nil
	}
	switch toolKind(*row.ToolName) {
	case shellTool:
		m.applyCommand(r)
		return nil
	case editorTool:
		return m.applyEditor(r, schemas.Value(row.Observation))
	case "edit":
		if succeeded(*row) {
			return m.applyDiff(r, row)
		}
	}
	return nil
}

// applyDiff records an edit whose answer contains a unified diff.
func (m *baseMap) applyDiff(r *Reading, row *schemas.StepRow) []edit {
	name := m.Relative(r.Call.Path)
	changes, ok := diffChanges(schemas.Value(row.Observation))
	if name == "" {
		return nil
	}
	if !ok || schemas.Value(row.ObservationTruncated) {
		if len(row.FilesChanged) > 0 || strings.Contains(schemas.Value(row.Observation), "updated successfully") {
			m.file(name).isLost = true
		}
		return nil
	}
	return []edit{m.record(name, changes)}
}

// record adds the changes of one edit of a file. Their line numbers are those before the edit.
func (m *baseMap) record(name string, changes []change) edit {
	e := edit{file: name}
	for _, c := range changes {
		for _, n := range c.lines() {
			if base := m.line(name, n); base > 0 {
				e.lines = append(e.lines, base)
			}
		}
	}
	f := m.file(name)
	for i := len(changes) - 1; i >= 0; i-- { // from the end, so that the numbers stay valid
		f.changes = append(f.changes, changes[i])
	}
	return e
}

// diffChanges reads the hunks of a unified diff. It returns false if it finds none, or if one is incomplete.
func diffChanges(text string) (out []change, ok bool) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		first, removed, added, isHunk := hunkRange(lines[i])
		if !isHunk {
			continue
		}
		if removed == 0 {
			first++
		}
		from := i + 1
		for i++; i < len(lines) && removed+added > 0; i++ {
			switch line := lines[i]; {
			case line == "" || line[0] == ' ': // some tools remove the space of a blank line
				removed, added = removed-1, added-1
			case line[0] == '-':
				removed--
			case line[0] == '+':
				added--
			case line[0] != '\\':
				return nil, false
			}
		}
		if removed != 0 || added != 0 {
			return nil, false
		}
		hunk := make([]string, 0, i-from)
		for _, l := range lines[from:i] {
			if l == "" {
				l = " "
			}
			hunk = append(hunk, l)
		}
		out = append(out, changesOf(first, hunk)...)
		i--
	}
	return out, len(out) > 0
}

// hunkRange reads the heading of a hunk: "@@ -3,4 +3,5 @@".
func hunkRange(line string) (first, removed, added int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, 0, 0, false
	}
	count := func() (n, lines int, ok bool) {
		n, rest, ok = leadingNumber(rest)
		lines = 1
		if after, hasCount := strings.CutPrefix(rest, ","); ok && hasCount {
			lines, rest, ok = leadingNumber(after)
		}
		return n, lines, ok
	}
	if first, removed, ok = count(); !ok {
		return 0, 0, 0, false
	}
	if rest, ok = strings.CutPrefix(rest, " +"); !ok {
		return 0, 0, 0, false
	}
	_, added, ok = count()
	return first, removed, added, ok && strings.HasPrefix(rest, " @@")
}

// applyEditor records an edit of str_replace_editor. Its answer shows the new lines with numbers.
func (m *baseMap) applyEditor(r *Reading, answer string) []edit {
	name := m.Relative(r.Call.Path)
	switch r.Call.Command {
	case "create", "undo_edit":
		m.file(name).isLost = true
	case "insert":
		if r.Call.InsertLine != nil && strings.Contains(answer, "has been edited") {
			return []edit{m.record(name, []change{{first: *r.Call.InsertLine + 1, added: strings.Count(r.Call.NewText, "\n") + 1}})}
		}
	case "str_replace":
		if !strings.Contains(answer, "has been edited") {
			return nil
		}
		c, ok := replacedLines(r, answer)
		if !ok {
			m.file(name).isLost = true
			return nil
		}
		return []edit{m.record(name, []change{c})}
	}
	return nil
}

// replacedLines finds the place of the new text in the part of the file that an answer shows.
func replacedLines(r *Reading, answer string) (change, bool) {
	before, after := strings.Split(r.Call.OldText, "\n"), strings.Split(r.Call.NewText, "\n")
	probe := Reading{}
	probe.numbered("file", answer)
	shownLines := probe.Lines
	for _, at := range []int{4, 3, 2, 1, 0} { // the part begins up to four lines before the change
		if at+len(after) > len(shownLines) {
			continue
		}
		matches := true
		for i, text := range after {
			got := shownLines[at+i].Text
			switch {
			case i == 0 && i == len(after)-1:
				matches = matches && strings.Contains(got, text)
			case i == 0:
				matches = matches && strings.HasSuffix(got, text)
			case i == len(after)-1:
				matches = matches && strings.HasPrefix(got, text)
			default:
				matches = matches && got == text
			}
		}
		if !matches {
			continue
		}
		first := shownLines[at].Number
		for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after, first = before[1:], after[1:], first+1
		}
		for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
			before, after = before[:len(before)-1], after[:len(after)-1]
		}
		return change{first: first, removed: len(before), added: len(after)}, true
	}
	return change{}, false
}

var (
	// patches matches commands that may change any file.
	patches = regexp.MustCompile(git + `(?:am|apply|cherry-pick|merge|pull|rebase|revert)\b|(?:^|[;&|(\n])\s*patch\s+[-<\w./]`)
	// restores matches commands that may undo the edits of any file.
	restores = regexp.MustCompile(git + `(?:checkout|restore|stash|reset)\b`)
	// writes matches commands that may change the files that they name.
	writes = regexp.MustCompile(`\bsed\s+(?:\S+\s+)*?-i|\bperl\s+(?:\S+\s+)*?-\S*i|[^0-9&>-]>{1,2}\s*[^&\s]|\btee\b|\bwrite\(|write_text|\bmv\b|\bcp\b|^edit\s`)
)

// applyCommand marks the files that a shell command may have changed. After that, their lines are
// unknown.
func (m *baseMap) applyCommand(r *Reading) {
	command := r.Call.Command
	dir := ""
	if words := strings.Fields(command); len(words) > 2 && words[0] == "cd" {
		dir = strings.TrimRight(words[1], ";")
	}
	switch {
	case patches.MatchString(command):
		m.isLost = true
	case restores.MatchString(command):
		for _, f := range m.files {
			f.isLost = true
		}
		fallthrough
	case writes.MatchString(command):
		for _, word := range strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t\n;|&<>()'\"`,", c) }) {
			if strings.Contains(word, ".") && !strings.HasPrefix(word, "-") {
				m.file(m.Relative(word)).isLost = true
				if dir != "" {
					m.file(m.Relative(path.Join(dir, word))).isLost = true
				}
			}
		}
	}
}
