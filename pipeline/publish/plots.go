package publish

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Plot is one figure of the dataset card: a small SVG without scripts or embedded fonts.
type Plot struct {
	Name  string // of the file, without extension
	Title string
	SVG   []byte
}

type bar struct {
	label string
	n     int
}

// Sizes of all figures, in pixels unless noted. Each row has a label, a bar and a number,
// from left to right.
const (
	plotWidth  = 640
	plotLabel  = 200
	plotRow    = 22
	plotTop    = 40
	plotNumber = 70
	maxBars    = 16 // rows
	maxLabel   = 28 // characters
)

// Plots draws the figures about the counted episodes. It omits figures without data.
func (t *Tally) Plots() []Plot {
	s := t.stats
	var out []Plot
	for _, p := range []struct {
		name, title string
		bars        []bar
	}{
		{"outcomes", "Episodes by outcome", topCounts(s.Outcomes)},
		{"turns", "Episodes by number of turns", histogram(t.turns)},
		{"tokens", "Episodes by tokens as a training text", histogram(t.sft)},
		{"tools", "Calls by tool", topCounts(s.Tools)},
		{"pdb", "Debugger calls by command", topCounts(s.PDBCommands)},
		{"masks", "Agents' steps that are not trained on, by reason", topCounts(s.Masks)},
	} {
		if len(p.bars) > 0 {
			out = append(out, Plot{Name: p.name, Title: p.title, SVG: drawBars(p.title, p.bars)})
		}
	}
	return out
}

// topCounts returns a bar for each of the highest counts, and one for the sum of all others.
func topCounts(m map[string]int) []bar {
	var bars []bar
	rest := 0
	for i, k := range byCount(m) {
		if i < maxBars-1 || len(m) == maxBars {
			bars = append(bars, bar{k, m[k]})
		} else {
			rest += m[k]
		}
	}
	if rest > 0 {
		bars = append(bars, bar{fmt.Sprintf("%d others", len(m)-len(bars)), rest})
	}
	return bars
}

// histogram counts values in at most maxBars ranges of equal width. The width is 1, 2 or 5
// times a power of ten.
func histogram(values []int64) []bar {
	if len(values) == 0 {
		return nil
	}
	low, high := slices.Min(values), slices.Max(values)
	width := int64(1)
	for step := 0; high/width-low/width >= maxBars; step++ {
		width = width * []int64{2, 5, 2}[step%3] / []int64{1, 2, 1}[step%3]
	}
	bars := make([]bar, high/width-low/width+1)
	for i := range bars {
		from := (low/width + int64(i)) * width
		bars[i].label = fmt.Sprint(from)
		if width > 1 {
			bars[i].label = fmt.Sprintf("%d to %d", from, from+width-1)
		}
	}
	for _, v := range values {
		bars[v/width-low/width].n++
	}
	return bars
}

// drawBars returns a figure with horizontal bars.
func drawBars(title string, bars []bar) []byte {
	highest := 1
	for _, b := range bars {
		highest = max(highest, b.n)
	}
	height := plotTop + plotRow*len(bars) + 10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s" font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height, html.EscapeString(title))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n"+`<text x="10" y="24" font-size="15" font-weight="bold" fill="#222222">%s</text>`+"\n",
		plotWidth, height, html.EscapeString(title))
	for i, b := range bars {
		y := plotTop + plotRow*i
		width := (plotWidth - plotLabel - plotNumber) * b.n / highest
		label, squeeze := short(b.label), ""
		if room := plotLabel - 16; labelWidth(label) > room {
			squeeze = fmt.Sprintf(` textLength="%d" lengthAdjust="spacingAndGlyphs"`, room)
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end" fill="#222222"%s>%s</text>`, plotLabel-8, y+15, squeeze, html.EscapeString(label))
		if b.n > 0 {
			fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%d" height="%d" fill="#3b6ea5"/>`, plotLabel, y+3, max(width, 1), plotRow-6)
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" fill="#222222">%d</text>`+"\n", plotLabel+width+6, y+15, b.n)
	}
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

// labelWidth returns an upper estimate of a label's width, in pixels, in any sans-serif font.
func labelWidth(label string) int {
	width := 0
	for _, r := range label {
		switch {
		case strings.ContainsRune("ijl.,:;|'!() ", r):
			width += 5
		case strings.ContainsRune("mwMW@%…", r) || r > 0x1100:
			width += 13
		case r >= 'A' && r <= 'Z':
			width += 10
		default:
			width += 8
		}
	}
	return width
}

// short truncates a label, and replaces characters that are not valid in XML.
func short(label string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, label))
	if len(runes) > maxLabel {
		return string(runes[:maxLabel-1]) + "…"
	}
	return string(runes)
}
