package redact

import "strings"

// look looks for secrets in the arguments of a command, whose name is text[from:to].
func (c *command) look(f *finder, from, to int) {
	text := f.text
	if to == len(text) || from > 0 && text[from] > ' ' && (wordAt(text, from-1) || strings.IndexByte("-/.$", text[from-1]) >= 0 && text[from] == '/') || from < f.commandEnd[c] {
		return
	}
	line := text[to:min(len(text), to+window)]
	line = line[:commandLength(line)]
	if f.commandEnd == nil {
		f.commandEnd = map[*command]int{}
	}
	f.commandEnd[c] = to + len(line)
	f.work.spend(perRun + len(line))
	flag := ""
	for at := 0; at < len(line); {
		size := strings.IndexByte(line[at:], ' ')
		if size < 0 {
			size = len(line) - at
		}
		word := strings.Trim(line[at:at+size], `"',[]()\`)
		value := word
		if flag == "" {
			flag, value = c.flag(word)
		}
		if flag != "" && value != "" {
			if sign := strings.IndexByte(":%,", flag[len(flag)-1]); sign >= 0 && flag[0] == '-' {
				_, value, _ = strings.Cut(value, flag[len(flag)-1:])
			}
			value = strings.Trim(value, `"'\`)
			if value != "" && strings.IndexByte("-{[", value[0]) < 0 {
				f.take(assignment{value: value, name: strong, quoted: true, prose: c.UnlikeAName}, to+at+strings.Index(line[at:], value))
			}
			flag = ""
		}
		at += size + 1
	}
}

// commandLength returns the length of a command: up to a | or ; outside of quotes, or to the end of
// its line.
func commandLength(line string) int {
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case c == '\n', quote == 0 && (c == '|' || c == ';'):
			return i
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
	}
	return len(line)
}

// flag returns the flag that an argument is or begins with, and the rest of the argument.
func (c *command) flag(word string) (flag, value string) {
	if word == "" || word[0] != '-' && word[0] != '/' {
		return "", ""
	}
	for _, flag := range c.Flags {
		if rest, ok := strings.CutPrefix(word, strings.TrimRight(flag, ":%,")); ok && !(strings.HasPrefix(flag, "--") && rest != "" && rest[0] != '=') {
			return flag, strings.TrimLeft(rest, "=:")
		}
	}
	return "", ""
}
