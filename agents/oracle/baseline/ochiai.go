package policies

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// ochiaiOrder traces the tests and returns the functions that failing tests run, most suspicious first.
func (s *script) ochiaiOrder() ([]definition, error) {
	args := map[string]any{"command": rankingCommand(s.evidence.command), "timeout": rankTimeout}
	if err := s.act(sayRank(), bashTool, args); err != nil {
		return nil, err
	}
	var out []definition
	for _, m := range rankedPlace.FindAllStringSubmatch(s.last.Observation.Text, -1) {
		line, _ := strconv.Atoi(m[2]) // the pattern ensures digits
		if d := s.evidence.functionAt(m[1], line); d != nil && !slices.Contains(out, *d) {
			out = append(out, *d)
		}
	}
	if len(out) == 0 {
		return nil, errNoFailure
	}
	return out, nil
}
