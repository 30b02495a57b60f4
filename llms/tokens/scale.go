package tokens

import (
	"math"
	"sync"
)

// Scale converts token counts of a Counter to the counts that a server will report. Servers use
// different vocabularies and templates, but for one model the ratio is nearly constant. The zero value
// is ready to use. Scale is safe for concurrent use.
type Scale struct {
	mu      sync.Mutex
	ratio   float64 // 0 before the first report
	reports int
}

// DefaultRatio is the ratio before the first report. Other vocabularies need up to a quarter more
// tokens for code and English.
const DefaultRatio = 1.25

// Bounds of a plausible ratio.
const (
	minRatio = 0.25
	maxRatio = 8
)

// Ratio returns reported/counted, limited to the plausible bounds, or 0 if one of the counts is
// not positive.
func Ratio(counted int, reported int64) float64 {
	if counted <= 0 || reported <= 0 {
		return 0
	}
	return min(max(float64(reported)/float64(counted), minRatio), maxRatio)
}

// Report adds the count that a server reported. The ratio is the mean of the first four
// reports; each later report contributes a quarter.
func (s *Scale) Report(counted int, reported int64) {
	r := Ratio(counted, reported)
	if r == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = min(s.reports+1, 4)
	s.ratio += (r - s.ratio) / float64(s.reports)
}

// Expect returns the count that the server will report for a prompt.
func (s *Scale) Expect(counted int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.ratio
	if s.reports == 0 {
		r = DefaultRatio
	}
	return int(math.Ceil(float64(counted) * r))
}
