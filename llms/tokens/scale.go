package tokens

import (
	"math"
	"sync"
)

// Scale converts counts to the counts that a server will report. Servers have their own
// vocabularies and templates, and for one model the ratio is nearly constant. The zero value
// is ready to use. Scale is safe for concurrent use.
type Scale struct {
	mu      sync.Mutex
	ratio   float64 // 0 before the first report
	reports int
}

// Unknown is the ratio before the first report. Other vocabularies need up to a quarter more
// tokens for code and English.
const Unknown = 1.25

// Bounds of a plausible ratio.
const (
	least = 0.25
	most  = 8
)

// Ratio returns the ratio of a reported count to a count, within the plausible bounds; 0 if
// one of them is not positive.
func Ratio(counted int, reported int64) float64 {
	if counted <= 0 || reported <= 0 {
		return 0
	}
	return min(max(float64(reported)/float64(counted), least), most)
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
		r = Unknown
	}
	return int(math.Ceil(float64(counted) * r))
}
