package budget

import "fmt"

// Limits holds cost limits in USD; 0 means no limit.
type Limits struct {
	Run     float64
	Task    float64 // of all attempts at one task
	Episode float64
}

// limit is a maximum in USD together with the amounts that count against it. If the maximum is 0,
// there is no limit, but the amounts are still added up.
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

// refusal explains why a call that may cost worst is refused. name is the name of the limit.
func (l *limit) refusal(name string, worst float64) string {
	return fmt.Sprintf("%s: $%.4f of $%.4f are spent and the next call may cost $%.4f", name, l.spent, l.max, worst)
}
