package audit

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

var (
	evalCounts   = testLine{"The tests ", lazily(`^The tests (?:do not )?pass\. (\d+) passed, (\d+) failed\.`)}
	evalResult   = testLine{" (", lazily(`^  (\S.*) \((failed|error)\)$`)}
	pytestCounts = testLine{"ed", lazily(`^=* ?(?:\d+ \w+, )*?(?:(\d+) failed)?(?:, )?(?:(\d+) passed)?(?:, \d+ \w+)*(?: in [\d.]+s.*)?$`)}
	pytestResult = testLine{".py", lazily(`^(FAILED|ERROR|PASSED) (\S+\.py\S*)(?: - (.*))?$`)}
	verboseLine  = testLine{"::", lazily(`^(\S+::\S+) (PASSED|FAILED|ERROR)\b`)}
	pytestAt     = testLine{".py:", lazily(`^([^\s:]+\.py):(\d+): (\S.*)?$`)}
	unittestName = testLine{": ", lazily(`^(FAIL|ERROR): (\w+) \((.*)\)$`)}
	unittestRan  = testLine{"Ran ", lazily(`^Ran (\d+) tests? in `)}
	unittestEnd  = testLine{"FAILED (", lazily(`^FAILED \((?:failures=(\d+))?(?:, )?(?:errors=(\d+))?`)}
	fileLine     = testLine{`File "`, lazily(`^\s*File "([^"]+)", line (\d+)`)}
)

// testLine is the format of a line in the output of tests. Each line of the format contains mark, which saves most of the time.
type testLine struct {
	mark    string
	pattern func() *regexp.Regexp
}

func (t testLine) find(line string) []string {
	if !strings.Contains(line, t.mark) {
		return nil
	}
	return t.pattern().FindStringSubmatch(line)
}

// pytestTitle reads the line above the report of a test: "____ test_name ____".
func pytestTitle(line string) (title string, ok bool) {
	right := strings.TrimLeft(line, "_")
	title = strings.TrimRight(right, "_")
	ok = len(line)-len(right) > 2 && len(right)-len(title) > 2 && len(title) > 2 && title[0] == ' ' && title[1] != ' ' && title[len(title)-1] == ' '
	return strings.TrimSpace(title), ok
}

// tests reads the results of tests in an answer, in the formats of eval, pytest and unittest.
func (r *Record) tests(row *schemas.StepRow) {
	text := *row.Observation
	if !strings.Contains(text, "passed") && !strings.Contains(text, "failed") && !strings.Contains(text, "Ran ") && !strings.Contains(text, "PASSED") {
		return
	}
	run := TestRun{Step: int(row.StepIndex), Passed: -1, Failed: -1}
	current, messageDone := "", false
	ran := -1
	result := func(id string) *TestResult {
		if t := run.Result(id); t != nil {
			if len(id) > len(t.ID) {
				t.ID = id
			}
			return t
		}
		run.Results = append(run.Results, TestResult{ID: id})
		return &run.Results[len(run.Results)-1]
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == '>' || (current == "" || line[0] == ' ') && !mayBeResult(line) {
			continue
		}
		if m := evalCounts.find(line); m != nil {
			run.Passed, run.Failed = number(m[1]), number(m[2])
		} else if m := evalResult.find(line); m != nil {
			result(m[1]).Outcome = m[2]
		} else if title, ok := pytestTitle(line); ok {
			current, messageDone = strings.TrimPrefix(title, "ERROR at setup of "), false
			current = strings.ReplaceAll(current, ".", "::")
			result(current).Outcome = "failed"
		} else if m := unittestName.find(line); m != nil {
			current, messageDone = m[2], false
			result(current).Outcome = map[string]string{"FAIL": "failed", "ERROR": "error"}[m[1]]
		} else if m := pytestResult.find(line); m != nil {
			t := result(m[2])
			t.Outcome = strings.ToLower(m[1])
			if t.Message == "" {
				t.Message = m[3]
			}
		} else if m := verboseLine.find(line); m != nil {
			result(m[1]).Outcome = strings.ToLower(m[2])
		} else if m := unittestRan.find(line); m != nil {
			ran, current = number(m[1]), ""
		} else if m := unittestEnd.find(line); m != nil && ran >= 0 {
			run.Failed = max(0, number(m[1])) + max(0, number(m[2]))
			run.Passed = ran - run.Failed
		} else if line == "OK" && ran >= 0 {
			run.Passed, run.Failed = ran, 0
		} else if m := pytestCounts.find(line); m != nil && m[1]+m[2] != "" {
			run.Passed, run.Failed = max(0, number(m[2])), max(0, number(m[1]))
			current = ""
		} else if current != "" {
			t := result(current)
			switch {
			case strings.HasPrefix(line, "E  ") && !messageDone:
				t.Message, messageDone = strings.TrimSpace(line[1:]), true
			case strings.HasPrefix(line, "E  "):
				t.Details = append(t.Details, strings.TrimSpace(line[1:]))
			default:
				m := pytestAt.find(line)
				if m == nil {
					m = fileLine.find(line)
				}
				if m != nil {
					t.Places = append(t.Places, Place{r.Relative(m[1]), number(m[2])})
				} else if len(t.Places) > 0 && t.Message == "" && line[0] != ' ' { // the last line of a traceback
					t.Message = line
				}
			}
		}
	}
	if run.Passed >= 0 || run.Failed >= 0 || len(run.Results) > 0 {
		r.Tests = append(r.Tests, run)
	}
}

// mayBeResult reports whether a line outside of a report can match a pattern above. It saves most of the time.
func mayBeResult(line string) bool {
	switch line[0] {
	case ' ':
		return strings.HasSuffix(line, "ed)") || strings.HasSuffix(line, "error)") || strings.Contains(line, `File "`)
	case '_', '=', 'F', 'E', 'P', 'R', 'O', 'T', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return true
	}
	return strings.Contains(line, "::")
}
