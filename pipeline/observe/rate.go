package observe

import "time"

// rate measures how fast a number grows.
type rate struct {
	span    time.Duration // over which it measures
	samples []measurement
}

type measurement struct {
	at    time.Time
	value float64
}

// perSecond records the number and returns its growth per second over the last span.
func (r *rate) perSecond(now time.Time, value float64) float64 {
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= r.span {
		r.samples = r.samples[1:]
	}
	if n := len(r.samples); n == 0 || now.Sub(r.samples[n-1].at) >= r.span/60 {
		r.samples = append(r.samples, measurement{now, value})
	}
	first := r.samples[0]
	if elapsed := now.Sub(first.at).Seconds(); elapsed > 0 {
		return (value - first.value) / elapsed
	}
	return 0
}
