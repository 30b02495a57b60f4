package baseline

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	bashTool    = "bash"
	rankTimeout = 600 // seconds
)

// rankScript is a sitecustomize.py that traces the tests of its process, and appends the functions
// that failing tests run to the file $RANKING when the process ends. Each line has the score of a
// function and the place of its first line with that score.
//
//go:embed ochiai.py
var rankScript string

// rankingCommand returns a shell script that runs the tests with rankScript and prints the ranking.
// Plain asserts do not call the __repr__ of values.
func rankingCommand(tests string) string {
	return fmt.Sprintf(`(
cover=$(mktemp -d)
cat >$cover/sitecustomize.py <<'END'
%sEND
export RANKING=$cover/ranking PYTHONPATH="$cover:$PYTHONPATH" PYTEST_ADDOPTS="$PYTEST_ADDOPTS --assert=plain"
( %s
) >$cover/output 2>&1
[ -s $RANKING ] && cat $RANKING || tail -n 20 $cover/output
rm -r $cover
)`, rankScript, strings.ReplaceAll(tests, "PYTHONPATH=", "PYTHONPATH=$cover:"))
}

var rankedPlace = regexp.MustCompile(`(?m)^[01]\.\d{3} (\S+\.py):(\d+)$`)

// rank traces the tests.
func (s *search) rank() schemas.Reply {
	return s.ask("Code that failing tests run and passing tests do not run is suspicious. I trace all tests and rank the functions by the Ochiai coefficient.",
		bashTool, map[string]any{"command": rankingCommand(s.entrypoint), "timeout": rankTimeout})
}

// ochiaiOrder returns a line of each function that failing tests run, most suspicious first.
func (s *search) ochiaiOrder() []write.Place {
	var out []write.Place
	for _, m := range rankedPlace.FindAllStringSubmatch(*s.ranking, -1) {
		line, _ := strconv.Atoi(m[2]) // the pattern ensures digits
		out = append(out, write.Place{File: m[1], Line: line})
	}
	return out
}

// readRanked reads the code around a line of the ranking.
func (s *search) readRanked(p write.Place) schemas.Reply {
	return s.ask(fmt.Sprintf("The ranking names line %d of %s. I read the code around it.", p.Line, p.File),
		"view", map[string]any{"path": p.File, "start": max(1, p.Line-write.LinesBefore), "end": p.Line + write.LinesAfter})
}
