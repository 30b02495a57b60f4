package metrics

import "slices"

// resamples is the number of samples of the bootstrap.
const resamples = 1000

// interval returns the bounds of the 95 % interval of samples, which it sorts.
func interval(samples []float64) (low, high *float64) {
	slices.Sort(samples)
	last := float64(len(samples) - 1)
	return new(samples[int(0.025*last)]), new(samples[int(0.975*last+0.5)])
}
