package closure

import (
	"math"
	"strconv"
	"strings"
)

// isDerived reports whether a number follows from shown ones: it is the rounded or cut form of one, a
// percentage, or the result of a calculation whose operands the same text names.
func (c *checker) isDerived(value string) bool {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false
	}
	if c.hasShown(v*100) && v < 10 || c.hasShown(v/100) && strings.Contains(c.own, "%") {
		return true
	}
	if strings.IndexByte(value, '.') > 0 && c.containsText(value) || len(value) > 1 && c.containsText(value+".") { // a displayed number goes on
		return true
	}
	operands := c.operands()
	_, decimals, isFraction := strings.Cut(value, ".")
	unit := math.Pow10(-len(decimals))
	equal := func(a, b float64) bool { return equal(a, b) || len(decimals) > 2 && math.Abs(a-b) <= 2*unit } // perhaps rounded
	for _, a := range operands {
		if isFraction && a.digits > len(decimals) && math.Abs(a.v-v) <= 0.5001*unit || equal(v, math.Sqrt(a.v)) || a.v != 0 && isFraction && equal(v, 1/a.v) {
			return true
		}
		for _, b := range operands {
			isLarge := a.v >= 10 && b.v >= 10 || a.digits > 0 || b.digits > 0
			if equal(v, a.v*b.v) || equal(v, a.v*b.v/100) || b.v != 0 && equal(v, a.v/b.v) || isLarge && (equal(v, a.v+b.v) || equal(v, a.v-b.v)) {
				return true
			}
		}
	}
	return false
}

func (c *checker) hasShown(v float64) bool { return c.wasShown(strconv.FormatFloat(v, 'f', -1, 64)) }

func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-14*math.Abs(a) }

type operand struct {
	v      float64
	digits int // after the point
}

// operands returns the numbers in the text of the step that were shown, were calculated before, or are small.
func (c *checker) operands() (out []operand) {
	for i := 0; i < len(c.own); i++ {
		if classes[c.own[i]] == letter {
			start := i
			for i < len(c.own) && classes[c.own[i]] == letter {
				i++
			}
			if n := numberWords[strings.ToLower(c.own[start:i])]; n > 1 {
				out = append(out, operand{float64(n), 0})
			}
			continue
		}
		if classes[c.own[i]] != digit || i > 0 && classes[c.own[i-1]]&(letter|digit) != 0 {
			continue
		}
		value, n := numberAt(c.own[i:])
		v, err := strconv.ParseFloat(value, 64)
		_, decimals, _ := strings.Cut(value, ".")
		if isKnown := len(value) == 1 && v > 1 || c.bound[value] || c.wasShown(value) || len(decimals) > 0 && c.containsText(value); err == nil && isKnown {
			out = append(out, operand{v, len(decimals)})
		}
		i += n
	}
	return out
}
