package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Linter returns what a text reveals about a fix. It returns an empty list for a harmless text.
type Linter func(text string) []string

var (
	subjectPrefix = regexp.MustCompile(`^(?:\[[^\]]*\]\s*|[\w./()!-]+:\s+)+`)
	sentenceAt    = regexp.MustCompile(`[.!?](?:\s+|$)`)
	leadingFix    = regexp.MustCompile(`(?i)^(?:(?:bug)?fix(?:e[sd])?|correct(?:ed|s)?|resolve[sd]?|address(?:e[sd])?|solve[sd]?|repair(?:ed)?)\b:?\s+(?:(?:a|an|the|some|this)\s+)?(?:(?:bug|issue|problem|error)s?\s+(?:where|when|in which|with|that|of)\s+)?`)
	codeBlock     = regexp.MustCompile("(?s)```.*?```|~~~.*?~~~")
	listItem      = regexp.MustCompile(`^[-*+]\s+`)
	identifier    = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	hunkHeader    = regexp.MustCompile(`(?m)^@@ .* @@.*$`)
	definition    = regexp.MustCompile(`\b(?:def|class)\s+(\w+)`)
)

// These patterns are compiled at their first use because they are large.
var (
	// trailer matches a line such as "Signed-off-by: A <a@b>" or "Closes #3".
	trailer = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:[\w-]+-by|fix(?:e[sd])?|close[sd]?|resolve[sd]?|ref(?:s|erences)?|see(?: also)?|cc|change-id|pr|issue|bug|ticket|refs?)\s*:?\s*(?:#|gh-|bpo-|http|[A-Z][a-z]+ [A-Z].*<|issue|pr\b).*$|^[\w-]+-by:.*$`)
	})
	// reference matches a link or the number of an issue, with words such as "see" before it.
	reference = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\s*[\[(]?(?:(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|see|issue|bug|ticket|pr|pull request|part of)\s*:?\s*)?(?:[\w./-]+#\d+|\bgh-?\d+|\bbpo-\d+|#\d+|https?://\S+)[\])]?`)
	})
	// solution matches a sentence that describes the change, not the bug.
	solution = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:use|chang|replac|remov|mov|renam|refactor|return|call|pass|check|add|set|convert|skip|updat|bump|test|revert|switch|simplif|also|now|instead|make|ensure|allow|support|handl|avoid|don'?t|do not|only|always|never|introduc|implement|improv|apply|merge|drop|keep|stop|prevent|restor|rewrit|clean|minor|wip|tweak|adjust)\w*\b` +
			`|\b(?:now|instead|this (?:commit|patch|change|pr|fix)|we|fixed|regression test|changelog|by (?:using|adding|checking|removing|making|changing|moving))\b`)
	})
	// command matches a subject that may begin with an order, such as "Read the rows from the other end", by which
	// authors describe the change.
	command = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:accept|begin|build|cache|catch|clear|close|compare|compute|copy|count|create|decode|delete|disallow|emit|encode|end|escape|exclude|expose|fill|find|flush|forbid|format|generate|get|give|guard|ignore|include|initiali[sz]e|invalidate|join|let|limit|load|lock|look|match|move|normali[sz]e|open|order|pad|parse|permit|preserve|print|propagate|put|quote|raise|read|receive|reject|report|require|reset|respect|reuse|round|run|save|search|send|show|sort|split|start|store|strip|take|treat|trim|try|turn|unwrap|validate|wait|work|wrap|write)\b`)
	})
	// symptom matches a subject that may describe a bug.
	symptom = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:crash|wrong|error|exception|fail|incorrect|invalid|missing|unexpected|broken|bug|not|never|no|cannot|can't|doesn't|isn't|raise|hang|lose|lost|leak|ignored|off.by.one|too|duplicate|twice|endless|infinite|traceback|mismatch|inconsistent)\w*\b`)
	})
)

// minWords is the smallest number of words in a useful description of a bug.
const minWords = 5

// Instructions makes the agent's instructions from the commit message of a fix. It keeps the sentences that describe
// the bug, without issue numbers. It leaves out sentences that describe the change, that name something the patch
// changes, or that lint objects to (lint may be nil). If too little remains, it returns "".
func Instructions(f Fix, lint Linter) string {
	hidden := hiddenNamesOf(f)
	var kept []string
	for _, s := range sentences(f.Message) {
		if !reveals(s, hidden) && (lint == nil || len(lint(s)) == 0) {
			kept = append(kept, s)
		}
	}
	text := strings.Join(kept, " ")
	if len(strings.Fields(text)) < minWords {
		return ""
	}
	return text
}

// FromTests returns instructions that describe a bug only by its failing tests.
func FromTests(entrypoint string, failing []string) string {
	const maxListed = 20
	var out strings.Builder
	switch len(failing) {
	case 0:
		fmt.Fprintf(&out, "The command `%s` fails.\n", entrypoint)
	case 1:
		fmt.Fprintf(&out, "The command `%s` fails because this test does not pass:\n\n", entrypoint)
	default:
		fmt.Fprintf(&out, "The command `%s` fails because these tests do not pass:\n\n", entrypoint)
	}
	for _, id := range failing[:min(maxListed, len(failing))] {
		fmt.Fprintf(&out, "- %s\n", id)
	}
	if len(failing) > maxListed {
		fmt.Fprintf(&out, "- and %d more\n", len(failing)-maxListed)
	}
	out.WriteString("\nFind the cause in the program and fix it. Do not change the tests.\n")
	return out.String()
}

// sentences returns the sentences of a commit message that describe a bug.
func sentences(message string) []string {
	message = codeBlock.ReplaceAllString(strings.ReplaceAll(message, "\r", ""), "")
	subject, body, _ := strings.Cut(strings.TrimSpace(message), "\n")
	subject = subjectPrefix.ReplaceAllString(strings.TrimSpace(subject), "")
	var paragraphs []string
	if fixed := leadingFix.ReplaceAllString(subject, ""); fixed != subject {
		paragraphs = append(paragraphs, fixed)
	} else if symptom().MatchString(subject) && !command().MatchString(subject) && !solution().MatchString(subject) {
		paragraphs = append(paragraphs, subject)
	}
	var lines []string
	flush := func() {
		paragraphs = append(paragraphs, strings.Join(lines, " "))
		lines = nil
	}
	for line := range strings.Lines(body) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			flush()
		case trailer().MatchString(text), strings.HasPrefix(text, ">>>"), strings.HasPrefix(text, ">"),
			strings.HasPrefix(line, "    "), strings.HasPrefix(line, "\t"):
			flush() // a trailer, a quotation or code
		case listItem.MatchString(text):
			flush()
			lines = append(lines, listItem.ReplaceAllString(text, ""))
		default:
			lines = append(lines, text)
		}
	}
	flush()
	var out []string
	for i, p := range paragraphs {
		p = strings.TrimSpace(reference().ReplaceAllString(p, ""))
		for _, s := range splitSentences(p) {
			if i > 0 {
				if solution().MatchString(s) {
					continue
				}
				s = leadingFix.ReplaceAllString(s, "")
			}
			if s = completeSentence(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// splitSentences splits a paragraph after the punctuation that ends its sentences.
func splitSentences(paragraph string) []string {
	var out []string
	for paragraph != "" {
		at := sentenceAt.FindStringIndex(paragraph)
		if at == nil {
			return append(out, paragraph)
		}
		out = append(out, paragraph[:at[0]+1])
		paragraph = paragraph[at[1]:]
	}
	return out
}

// completeSentence adds a capital letter and a period to a fragment. It returns "" if s has no letters.
func completeSentence(s string) string {
	s = strings.Trim(strings.Join(strings.Fields(s), " "), " ,;:-")
	if !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	first, size := utf8.DecodeRuneInString(s)
	word, _, _ := strings.Cut(s, " ")
	if unicode.IsLower(first) && !strings.ContainsAny(word, "_.()`") {
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	return s
}

// hiddenNames are the names that instructions must not contain.
type hiddenNames struct {
	files     map[string]bool // paths and names of files
	functions map[string]bool // functions, classes and modules
	changed   map[string]bool // identifiers on only one side of the changed lines
}

func hiddenNamesOf(f Fix) hiddenNames {
	n := hiddenNames{files: map[string]bool{}, functions: map[string]bool{}, changed: map[string]bool{}}
	for _, file := range f.Files {
		n.files[file], n.files[path.Base(file)] = true, true
		if stem := strings.TrimSuffix(path.Base(file), path.Ext(file)); stem != "__init__" {
			n.functions[stem] = true
		}
	}
	for _, text := range hunkHeader.FindAllString(f.Gold, -1) {
		for _, m := range definition.FindAllStringSubmatch(text, -1) {
			n.functions[m[1]] = true
		}
	}
	sides := map[byte]map[string]bool{'+': {}, '-': {}}
	for line := range strings.Lines(f.Gold) {
		if line[0] != '+' && line[0] != '-' || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") {
			continue
		}
		for _, m := range definition.FindAllStringSubmatch(line, -1) {
			n.functions[m[1]] = true
		}
		for _, w := range identifier.FindAllString(line, -1) {
			sides[line[0]][w] = true
		}
	}
	for side, words := range sides {
		for w := range words {
			if otherSide := '+' + '-' - side; !sides[otherSide][w] {
				n.changed[w] = true
			}
		}
	}
	return n
}

// reveals reports whether a sentence names something that the fix changes.
func reveals(sentence string, n hiddenNames) bool {
	for file := range n.files {
		if strings.Contains(sentence, file) {
			return true
		}
	}
	for _, at := range identifier.FindAllStringIndex(sentence, -1) {
		w := sentence[at[0]:at[1]]
		if n.functions[w] || n.changed[w] && isCode(sentence, at[0], at[1]) {
			return true
		}
	}
	return strings.Contains(sentence, ".py")
}

// isCode reports whether s[from:to] is a word of code: by its form, or because it is quoted, called or an attribute.
func isCode(s string, from, to int) bool {
	w := s[from:to]
	if strings.ContainsAny(w, "_0123456789") || w[1:] != strings.ToLower(w[1:]) && w != strings.ToUpper(w) {
		return true
	}
	before, after := s[:from], s[to:]
	return strings.HasPrefix(after, "(") || strings.HasSuffix(before, ".") || strings.Count(before, "`")%2 == 1 ||
		strings.HasSuffix(before, "'") && strings.HasPrefix(after, "'") || strings.HasSuffix(before, `"`) && strings.HasPrefix(after, `"`)
}
