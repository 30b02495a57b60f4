package budget

import "fmt"

// Limits are in USD; 0 means that there is none.
type Limits struct {
	Run     float64
	Task    float64 // of all attempts at one task
	Episode float64
}

// limit is one maximum in USD and what counts against it. With a maximum of 0 it only counts.
type limit struct {
	max, spent, reserved float64
}

// rounding is the largest error of sums of floating-point numbers.
const rounding = 1e-9

// excludes reports whether worst does not fit even if the running calls cost nothing.
func (l *limit) excludes(worst float64) bool { return l.max > 0 && l.spent+worst > l.max+rounding }

// fits reports whether worst fits even if the running calls cost what they reserved.
func (l *limit) fits(worst float64) bool {
	return l.max <= 0 || l.spent+l.reserved+worst <= l.max+rounding
}

// refusal says why no call is made that may cost worst.
func (l *limit) refusal(of string, worst float64) string {
	return fmt.Sprintf("%s: $%.4f of $%.4f are spent and the next call may cost $%.4f", of, l.spent, l.max, worst)
}
