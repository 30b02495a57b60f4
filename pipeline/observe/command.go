package observe

// Commands that can be copied into a shell.

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

// again is the command that goes on with the run: the one that started it, without
// what would begin from the start and what is given anew, then more.
func (r *Report) again(more ...string) string {
	command := r.Command
	if len(command) == 0 {
		command = []string{"tracesmith", "run", "-c", "FILE", "--run-dir", r.RunDir}
	}
	anew := append([]string{"--retry"}, more...)
	var words []string
	for i := 0; i < len(command); i++ {
		flag, _, whole := strings.Cut(command[i], "=")
		switch {
		case flag == "--fresh":
		case strings.HasPrefix(flag, "--") && slices.Contains(anew, flag):
			if !whole { // its value is the next word
				i++
			}
		default:
			words = append(words, command[i])
		}
	}
	return shellwords.Command(append(words, more...)...)
}
