package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cell is one value of a table.
type cell struct {
	text   string
	color  string
	number bool // aligned to the right, and never shortened
}

// minText is the number of characters to which a text of a table may be shortened.
const minText = 8

// table prints rows below titles. On a terminal, the longest texts are shortened so that a row fits a line.
func (w *screen) table(titles []string, rows [][]cell) {
	widths, numbers := make([]int, len(titles)), make([]bool, len(titles))
	total := 2 * (len(titles) - 1)
	for i, title := range titles {
		widths[i] = utf8.RuneCountInString(title)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
			numbers[i] = numbers[i] || row[i].number
		}
		total += widths[i]
	}
	for ; w.width > 0 && total > w.width; total-- {
		widest := -1
		for i := range widths {
			if !numbers[i] && widths[i] > minText && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	head := make([]cell, len(titles))
	for i, title := range titles {
		head[i] = cell{text: title, color: bold}
	}
	for _, row := range append([][]cell{head}, rows...) {
		var line strings.Builder
		for i, c := range row {
			text := clipMiddle(c.text, widths[i])
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if numbers[i] {
				line.WriteString(space + w.paint(c.color, text) + "  ")
			} else {
				line.WriteString(w.paint(c.color, text) + space + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// clipMiddle shortens text to at most n runes. An ellipsis then replaces its middle.
func clipMiddle(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
