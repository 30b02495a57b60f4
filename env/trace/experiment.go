package trace

import (
	"strconv"
)

// candidate is a place whose values are put into the buggy run: first at one execution only, and if the
// test still fails, at all executions.
type candidate struct {
	points []point // executions of the same place; the experiments begin with the first one
	names  []string
}

// captured is a value of the fixed run.
type captured struct {
	data       *string // a pickled copy in base64; nil = it cannot be copied
	text       string
	expression *string // the expression that the last statement assigned or returned; nil if it did neither
}

// experiment is a run of the test in which variables get other values, as the probe reads it.
type experiment struct {
	ID     int              `json:"id"`
	Points []map[string]any `json:"points"`
	Ends   *functionEnds    `json:"ends"` // nil = all functions end as in the program
}

// functionEnds changes how a function ends.
type functionEnds struct {
	File     string                    `json:"file"`
	Function string                    `json:"function"`
	Line     int                       `json:"line"` // one of its lines, as functions may have the same name
	Kind     string                    `json:"kind"` // which ends of the buggy run Hits counts: <return> or <exit>
	Hits     map[string]map[string]any `json:"hits"` // from 1
}

// outcome is the result of an experiment.
type outcome struct {
	status string // of the test; "" = unknown
	set    bool   // the values were set
}

func readOutcomes(output []byte, out map[int]outcome) {
	set := map[int]bool{}
	readRecords(output, func(r record) {
		var id int
		var status string
		switch {
		case !r.decode(&id):
		case r.kind == "set":
			set[id] = true
		case r.kind == "outcome" && r.decode(&id, &status):
			out[id] = outcome{status, set[id]}
		}
	})
}

// available returns which variables of a candidate can be set, and the expressions for those that cannot be copied.
func (c candidate) available(values map[string]captured) (names []string, expressions map[string]string) {
	expressions = map[string]string{}
	for _, name := range c.names {
		switch v := values[name]; {
		case v.data != nil:
		case v.expression != nil && name != "<exit>":
			expressions[name] = *v.expression
		default:
			continue
		}
		names = append(names, name)
	}
	return names, expressions
}

// copies returns the copied values of a candidate by name, each with its text.
func (c candidate) copies(values map[string]captured) map[string][2]string {
	out := map[string][2]string{}
	for _, name := range c.names {
		if v := values[name]; v.data != nil {
			out[name] = [2]string{*v.data, v.text}
		}
	}
	return out
}

// experiments returns the experiments with a candidate: id sets its values at one execution of the place, and id + 1 at all.
func (c *comparison) experiments(id int, a candidate, values map[int]map[string]captured) (out []experiment) {
	p := a.points[0]
	x := p.events[0]
	names, expressions := a.available(values[x.n])
	if len(names) == 0 {
		return nil
	}
	point := map[string]any{"event": x.n, "file": x.file, "line": x.line, "values": a.copies(values[x.n]), "expressions": expressions}
	hits, fixed := c.sides[0].places(), c.sides[1].places()
	ends := a.ends()
	switch {
	case ends != "":
		for _, v := range p.vars {
			if v.Name == "<return>" {
				point["buggy"] = v.Buggy
			}
		}
		if hit := hits[x.n]; hit > 0 {
			out = append(out, experiment{ID: id, Points: []map[string]any{}, Ends: newEnds(x, ends, map[string]map[string]any{strconv.Itoa(hit): point})})
		}
	default:
		e := experiment{ID: id}
		if before := p.after[0]; len(expressions) > 0 && before.line > 0 {
			e.Points = append(e.Points, map[string]any{"event": before.n, "file": before.file, "line": before.line, "expressions": expressions, "later": true})
		}
		e.Points = append(e.Points, point)
		out = append(out, e)
	}
	if len(a.points) == 1 || ends == "<exit>" {
		return out
	}
	// When values are set, the rest of the run is like the fixed one, so the executions are counted as there.
	all := experiment{ID: id + 1, Points: []map[string]any{}}
	if ends != "" {
		all.Ends = newEnds(x, ends, map[string]map[string]any{})
	}
	for _, p := range a.points {
		x, hit := p.events[0], fixed[p.events[1].n]
		copies := a.copies(values[x.n])
		if hit == 0 || len(copies) == 0 {
			continue
		}
		point := map[string]any{"kind": x.kind, "hit": hit, "file": x.file, "line": x.line, "values": copies}
		if ends != "" {
			all.Ends.Hits[strconv.Itoa(hit)] = point
		} else {
			all.Points = append(all.Points, point)
		}
	}
	return append(out, all)
}

func newEnds(x event, kind string, hits map[string]map[string]any) *functionEnds {
	return &functionEnds{File: x.file, Function: x.function, Line: x.line, Kind: kind, Hits: hits}
}

// places returns how often the place of an event has occurred in the run, by the number of the event: for lines as
// countHits, for calls at a line, and for returns and for exits of a function. Numbers are missing for what is unknown.
func (s *steps) places() map[int]int {
	out := s.countHits()
	count := map[lineKey]int{}
	for _, e := range s.events {
		k := lineKey{e.kind, Place{File: e.file, Line: e.line}}
		if e.kind == "return" {
			k = lineKey{e.kind, Place{File: e.file, Function: e.function}}
			if _, raised := e.changes["<exit>"]; raised {
				k.kind = "exit"
			}
		}
		if e.kind != "line" && s.events[0].n == 0 {
			count[k]++
			out[e.n] = count[k]
		}
	}
	return out
}
