// Package nearest finds what somebody meant who wrote a name wrongly.
package nearest

// Distance is the Levenshtein distance of two short texts, in bytes; of longer
// ones (255) it is 255.
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

// Name is the name most like a wrong one, at most so many changes away; "" if
// there is none, the first of several.
func Name(wrong string, names []string, within int) string {
	at := ""
	for _, name := range names {
		if d := Distance(wrong, name); d <= within {
			within, at = d-1, name
		}
	}
	return at
}
