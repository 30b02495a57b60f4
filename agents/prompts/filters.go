package prompts

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/llms/tokens"
)

// prettyJSON returns a value as indented JSON.
func prettyJSON(v any) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("to_pretty_json: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// ellipsis replaces what trimMessage removes. It counts toward the limit.
const ellipsis = "…"

// parseLimit parses a limit: "200 tokens", "2000 characters", or "30%" of the model's context. It
// returns a percentage as a number of tokens.
func (s *Set) parseLimit(limit string) (n int, unit string, err error) {
	digits, unit, _ := strings.Cut(strings.TrimSpace(limit), " ")
	number, percent := strings.CutSuffix(digits, "%")
	if percent {
		digits = number
	}
	n, err = strconv.Atoi(digits)
	switch {
	case err != nil || n < 1, percent && (unit != "" || n > 100), !percent && unit != "tokens" && unit != "characters":
		return 0, "", fmt.Errorf(`trim_message: %q is not a limit: write "200 tokens", "2000 characters" or "30%%" of the model's context`, limit)
	case percent && s.limit == 0:
		return 0, "", fmt.Errorf(`trim_message: %q needs the size of the model's context: set context_limit of the model, or write "200 tokens"`, limit)
	case percent:
		return max(1, int(int64(s.limit)*int64(n)/100)), "tokens", nil
	}
	return n, unit, nil
}

// trimMessage shortens a text to a limit by removing its start, middle or end. It counts
// tokens with the default vocabulary, even if the model uses another one. It drops bytes that
// are not valid UTF-8.
func (s *Set) trimMessage(limit, where, text string) (string, error) {
	n, unit, err := s.parseLimit(limit)
	if err != nil {
		return "", err
	}
	text = strings.ToValidUTF8(text, "")
	runes := []rune(text)
	keep := n - 1
	switch {
	case unit == "characters" && len(runes) <= n:
		return text, nil
	case unit == "tokens":
		counter, err := tokens.Named(tokens.Default)
		if err != nil {
			return "", err
		}
		if counter.Text(text) <= n {
			return text, nil
		}
		// Tokens differ in length, so search for the longest text that fits.
		low, high := 0, len(runes)
		for low < high {
			mid := (low + high + 1) / 2
			rest, err := cut(runes, mid, where)
			if err != nil {
				return "", err
			}
			if counter.Text(rest) <= n {
				low = mid
			} else {
				high = mid - 1
			}
		}
		keep = low
	}
	return cut(runes, keep, where)
}

// cut keeps n characters of a text and replaces the others with the ellipsis.
func cut(text []rune, n int, where string) (string, error) {
	switch where {
	case "start":
		return ellipsis + string(text[len(text)-n:]), nil
	case "middle":
		return string(text[:(n+1)/2]) + ellipsis + string(text[len(text)-n/2:]), nil
	case "end":
		return string(text[:n]) + ellipsis, nil
	}
	return "", fmt.Errorf("trim_message: %q is not a place: write start, middle or end", where)
}

func steps(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	if len(out) == 1 {
		return "step " + out[0]
	}
	return "steps " + strings.Join(out, ", ")
}

// indent indents the lines of a text, so that it stands out from the text around it.
func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
