package normalise

import "unicode/utf8"

// head returns the first limit bytes of s or fewer, without cutting a character.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
