// Package nearest finds the known name that is closest to a misspelled one.
package nearest

// Distance returns the Levenshtein distance of two texts in bytes. If a text is longer
// than 255 bytes, it returns 255.
func Distance(a, b string) int {
	if len(a) > 255 || len(b) > 255 {
		return 255
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Name returns the first of the names that are closest to wrong; "" if none is within
// the given distance.
func Name(wrong string, names []string, within int) string {
	best := ""
	for _, name := range names {
		if d := Distance(wrong, name); d <= within {
			within, best = d-1, name
		}
	}
	return best
}
