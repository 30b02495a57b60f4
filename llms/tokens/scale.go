package tokens

import (
	"math"
	"sync"
)

// Scale turns counts into what a server will report. Servers use vocabularies and
// templates of their own, and prompts of one model miss by much the same factor.
// The zero value knows nothing yet. Safe for concurrent use.
type Scale struct {
	mu      sync.Mutex
	ratio   float64 // 0: nothing was reported
	reports int
}

// Unknown is what counts are multiplied by before the first report: vocabularies
// that are not ours make up to a quarter more of code and English.
const Unknown = 1.25

// A report that is further off than this is no count of the prompt.
const (
	least = 0.25
	most  = 8
)

// Ratio of a count and what was reported for it; 0 where one of them says nothing.
func Ratio(counted int, reported int64) float64 {
	if counted <= 0 || reported <= 0 {
		return 0
	}
	return min(max(float64(reported)/float64(counted), least), most)
}

// Report tells what a server took a prompt for. The last reports weigh most: the
// mean of the first four, then a quarter each.
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

// Expect is what a prompt will be reported as.
func (s *Scale) Expect(counted int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.ratio
	if s.reports == 0 {
		r = Unknown
	}
	return int(math.Ceil(float64(counted) * r))
}
