package closure

import (
	"math"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// uniformShare is the share of the blind ranker's probability that goes to all targets alike.
const uniformShare = 0.05

// surprise returns how many bits the choice of a target has, relative to a ranker that does not know the
// fix: it prefers functions and files in tracebacks, in recent texts, and with words of the
// failing test in their names. ok is false if the step chooses no target.
func (c *Closure) surprise(row *schemas.StepRow, args map[string]any) (bits float64, ok bool) {
	chosen, ok := c.target(row, args)
	if !ok {
		return 0, false
	}
	n := float64(len(c.targets.places))
	if !c.targets.known[chosen] {
		return -math.Log2(uniformShare / (n + 1)), true
	}
	sum, score := 0.0, 0.0
	for i, p := range c.targets.places {
		e := math.Exp(c.score(p, c.targets.hashes[i]))
		sum += e
		if p == chosen {
			score = e
		}
	}
	return -math.Log2((1-uniformShare)*score/sum + uniformShare/n), true
}

// score rates a target by what has been shown.
func (c *Closure) score(p target, hashes [4]uint64) (score float64) {
	recency := func(h uint64) float64 {
		last := c.tokens.lastText(h)
		if last == 0 {
			return 0
		}
		return math.Exp2(float64(last - c.tokens.now))
	}
	score = recency(hashes[0])
	if c.tokens.has(hashes[1]) {
		score++
	}
	if p.name == "" {
		return score + c.overlap(strings.TrimSuffix(p.file, ".py"))
	}
	score += 2 * recency(hashes[2])
	if c.tokens.has(hashes[3]) {
		score += 2
	}
	return score + c.overlap(p.name)
}

// overlap returns the share of a name's words that are in the name of the failing test.
func (c *Closure) overlap(name string) float64 {
	if c.failing == "" {
		return 0
	}
	all, shared := 0, 0
	for word := range strings.SplitSeq(name, "_") {
		if len(word) < 3 {
			continue
		}
		all++
		if strings.Contains(c.failing, word) {
			shared++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(shared) / float64(all)
}

// target returns the target that a view, an edit or a breakpoint chooses.
func (c *Closure) target(row *schemas.StepRow, args map[string]any) (target, bool) {
	if row.ToolName == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return target{}, false
	}
	switch schemas.Value(row.ToolCategory) {
	case "view", "edit":
		line := 0
		start := args["start"]
		if list, ok := args["view_range"].([]any); ok && len(list) > 0 {
			start = list[0]
		}
		if f, ok := start.(float64); ok {
			line = int(f)
		}
		path, _ := args["path"].(string)
		file := baseName(cleanPath(path))
		if !strings.HasSuffix(file, ".py") {
			return target{}, false
		}
		return c.targets.at(file, line), true
	case "pdb":
		commands, _ := args["command"].(string)
		for command := range strings.SplitSeq(commands, ";;") {
			word, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
			if word != "b" && word != "break" && word != "tbreak" || rest == "" {
				continue
			}
			place, _, _ := strings.Cut(rest, ",")
			return c.breakpoint(strings.TrimSpace(place))
		}
	}
	return target{}, false
}

// breakpoint returns the target of a breakpoint: path:line, line, path:function or function.
func (c *Closure) breakpoint(place string) (target, bool) {
	file, at, ok := strings.Cut(place, ":")
	if !ok {
		file, at = c.frame, place
	}
	file = baseName(file)
	if line := atoi(at); line > 0 {
		return c.targets.at(file, line), file != ""
	}
	at = at[strings.LastIndexByte(at, '.')+1:]
	for _, p := range c.targets.places {
		if p.name == at && at != "" && (!ok || p.file == file) {
			return p, true
		}
	}
	return target{name: at}, true
}
