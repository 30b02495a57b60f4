package metrics

import (
	"maps"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Attempts counts the attempts at a task that have a verdict.
type Attempts struct {
	Resolved int `json:"resolved"`
	Verified int `json:"verified"`
}

// With returns the counts with one more episode. An episode without a verdict changes nothing.
func (a Attempts) With(e *schemas.EpisodeRow) Attempts {
	if e.Resolved == nil {
		return a
	}
	a.Verified++
	if *e.Resolved {
		a.Resolved++
	}
	return a
}

func (a Attempts) share() float64 { return float64(a.Resolved) / float64(a.Verified) }

// Rate is the share of resolved attempts among those that have a verdict.
type Rate struct {
	Attempts
	Tasks int      `json:"tasks"`
	Rate  *float64 `json:"rate"` // nil without a verdict
	Low   *float64 `json:"low"`  // 95 % confidence interval
	High  *float64 `json:"high"`
}

// RateOf returns the rate over all attempts at tasks that have a verdict. Its interval is that of Wilson
// for the effective number of attempts, because the attempts at a task are not independent.
func RateOf(tasks map[string]Attempts) Rate {
	r, n := total(tasks)
	if r.Verified == 0 {
		return r
	}
	low, high := wilson(*r.Rate, n)
	r.Low, r.High = &low, &high
	return r
}

// total returns the rate over tasks without an interval, and the effective number of attempts: their
// number divided by the design effect, which is the variance between tasks in relation to that of
// independent attempts. See N. Dean and M. Pagano, Evaluating Confidence Interval Methods for Binomial
// Proportions in Clustered Surveys, Journal of Survey Statistics and Methodology 3 (2015) 484-503.
func total(tasks map[string]Attempts) (Rate, float64) {
	var r Rate
	for _, a := range tasks {
		r.Resolved += a.Resolved
		r.Verified += a.Verified
		if a.Verified > 0 {
			r.Tasks++
		}
	}
	n, k := float64(r.Verified), float64(r.Tasks)
	if r.Verified == 0 {
		return r, 0
	}
	p := r.share()
	r.Rate = &p
	switch {
	case r.Tasks == r.Verified: // one attempt per task
		return r, n
	case p == 0 || p == 1 || r.Tasks == 1: // the variance between tasks is unknown
		return r, k
	}
	squares := 0.0
	for _, key := range slices.Sorted(maps.Keys(tasks)) { // in a fixed order, so that equal tasks give equal sums
		d := float64(tasks[key].Resolved) - p*float64(tasks[key].Verified)
		squares += d * d
	}
	effect := squares * k / (k - 1) / (n * p * (1 - p))
	return r, n / max(1, effect)
}

// z is the 97.5 % quantile of the normal distribution.
const z = 1.959963984540054

// wilson returns the 95 % score interval of a proportion p of n: E. B. Wilson, Probable Inference, the Law
// of Succession, and Statistical Inference, Journal of the American Statistical Association 22 (1927)
// 209-212. Unlike p ± z·SE it stays within 0 and 1, and it is sound for few attempts and for p = 0 or 1.
func wilson(p, n float64) (low, high float64) {
	center := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return max(0, (center-half)/scale), min(1, (center+half)/scale)
}

// Difference is the difference between two rates: that of the second group minus that of the first.
type Difference struct {
	Difference *float64 `json:"difference"` // nil if a group has no verdict
	Low        *float64 `json:"low"`        // 95 % confidence interval
	High       *float64 `json:"high"`
}

// DifferenceOf returns the difference between the rates of b and a. Its interval combines the distances of
// the rates to their bounds, as in methods 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890
// (independent) and 2635-2650 (paired). The paired one takes the correlation of the two groups over tasks
// into account, as G. Y. Zou and A. Donner generalize it in Statistics in Medicine 27 (2008) 1693-1702.
// It applies if both groups have verdicts for the same tasks.
func DifferenceOf(a, b map[string]Attempts) Difference {
	ra, rb := RateOf(a), RateOf(b)
	if ra.Rate == nil || rb.Rate == nil {
		return Difference{}
	}
	r := correlation(a, b)
	d := *rb.Rate - *ra.Rate
	combine := func(x, y float64) float64 { return math.Sqrt(max(0, x*x+y*y-2*r*x*y)) }
	return Difference{
		&d,
		new(d - combine(*rb.Rate-*rb.Low, *ra.High-*ra.Rate)),
		new(d + combine(*rb.High-*rb.Rate, *ra.Rate-*ra.Low)),
	}
}

// correlation returns the correlation between the shares of a and b over tasks; 0 if they are not verdicts
// about the same tasks, or if one of the groups does not vary.
func correlation(a, b map[string]Attempts) float64 {
	if !covers(a, b) || !covers(b, a) {
		return 0
	}
	var tasks []string
	var meanA, meanB float64
	for _, task := range slices.Sorted(maps.Keys(a)) {
		if a[task].Verified > 0 {
			tasks = append(tasks, task)
			meanA += a[task].share()
			meanB += b[task].share()
		}
	}
	meanA, meanB = meanA/float64(len(tasks)), meanB/float64(len(tasks))
	var varA, varB, both float64
	for _, task := range tasks {
		da, db := a[task].share()-meanA, b[task].share()-meanB
		varA, varB, both = varA+da*da, varB+db*db, both+da*db
	}
	if varA == 0 || varB == 0 {
		return 0
	}
	return both / math.Sqrt(varA*varB)
}

// covers reports whether a has verdicts for all tasks for which b has some.
func covers(a, b map[string]Attempts) bool {
	for task, attempts := range b {
		if attempts.Verified > 0 && a[task].Verified == 0 {
			return false
		}
	}
	return true
}

// SignTest returns the probability of a division of tasks that is at least as uneven as that into only and
// other, if each task were equally likely to be in either part: the exact two-sided form of the test of
// Q. McNemar, Psychometrika 12 (1947) 153-157.
func SignTest(only, other int) float64 {
	n := only + other
	tail := 0.0
	logChoose := 0.0 // of n over i
	for i := range min(only, other) + 1 {
		if i > 0 {
			logChoose += math.Log(float64(n-i+1)) - math.Log(float64(i))
		}
		tail += math.Exp(logChoose - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}
