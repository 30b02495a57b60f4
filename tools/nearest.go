package tools

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

// nearest is the name most like a wrong one, "" if none is alike.
func nearest(wrong string, names []string) string {
	best, at := max(len(wrong)/2, 2)+1, ""
	for _, name := range names {
		if d := Distance(wrong, name); d < best {
			best, at = d, name
		}
	}
	return at
}
