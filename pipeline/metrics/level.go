package metrics

// Level compares a set of files, functions or lines with those of the fix.
type Level struct {
	Gold      int      `json:"gold"`
	Seen      int      `json:"seen"`
	Found     int      `json:"found"` // seen and gold
	Recall    *float64 `json:"recall,omitempty"`
	Precision *float64 `json:"precision,omitempty"`
	F05       *float64 `json:"f05,omitempty"`
	F1        *float64 `json:"f1,omitempty"`
	F2        *float64 `json:"f2,omitempty"`
	// FirstContact is the number of the agent's first step that showed one of them, from 1; nil if
	// none did.
	FirstContact *int32   `json:"first_contact,omitempty"`
	RecallArea   *float64 `json:"recall_area,omitempty"` // mean recall over the steps
}

// newLevel fills the ratios of a level.
func newLevel(gold, seen, found int) *Level {
	l := &Level{Gold: gold, Seen: seen, Found: found, Recall: Ratio(found, gold), Precision: Ratio(found, seen)}
	l.F05, l.F1, l.F2 = fBeta(l.Precision, l.Recall, 0.5), fBeta(l.Precision, l.Recall, 1), fBeta(l.Precision, l.Recall, 2)
	return l
}

// Ratio returns a / b, or nil if b is 0.
func Ratio(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	return new(float64(a) / float64(b))
}

// fBeta returns (1+β²)PR / (β²P+R), 0 if both are 0, and nil if one of them is unknown.
func fBeta(precision, recall *float64, beta float64) *float64 {
	if precision == nil || recall == nil {
		return nil
	}
	p, r, b := *precision, *recall, beta*beta
	if p == 0 && r == 0 {
		return new(0.0)
	}
	return new((1 + b) * p * r / (b*p + r))
}
