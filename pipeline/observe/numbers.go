package observe

// Numbers formatted for people.

import (
	"fmt"
	"strconv"
	"time"
)

// Number formats a count with grouped digits: 12,345.
func Number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural returns a count with its noun: "1 worker", "2 workers".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// duration formats a duration with a precision that fits its size.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour && d%time.Minute == 0:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// age formats the time since an event in whole seconds.
func age(d time.Duration) string {
	if d < time.Second {
		return "0 s"
	}
	return duration(d.Truncate(time.Second))
}

// USD formats an amount of money; small amounts get more digits.
func USD(v float64) string {
	switch {
	case v == 0:
		return "$0"
	case v >= 1:
		return fmt.Sprintf("$%.2f", v)
	}
	return fmt.Sprintf("$%.4f", v)
}

// compact formats a count with about two digits: 870, 1.2k, 41k, 3.4M.
func compact(n int64) string {
	v, unit := float64(n), ""
	for _, u := range []string{"k", "M", "G"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit != "" && v < 10 {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", v, unit)
}

// Unknown stands for a number that is not known.
const Unknown = "-"

// Percent formats a share; nil is unknown.
func Percent(share *float64) string {
	if share == nil {
		return Unknown
	}
	return fmt.Sprintf("%.1f%%", 100**share)
}

// PercentRange formats an interval of shares.
func PercentRange(low, high *float64) string {
	if low == nil {
		return Unknown
	}
	return fmt.Sprintf("%.1f to %.1f%%", 100**low, 100**high)
}

// Points formats a difference of shares in percentage points.
func Points(difference *float64) string {
	if difference == nil {
		return Unknown
	}
	return fmt.Sprintf("%+.1f", 100**difference)
}

// PointRange formats an interval of differences of shares.
func PointRange(low, high *float64) string {
	if low == nil {
		return Unknown
	}
	return fmt.Sprintf("%+.1f to %+.1f", 100**low, 100**high)
}

// Probability formats the probability that a test returns.
func Probability(p float64) string {
	if p < 0.0001 {
		return "less than 0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
