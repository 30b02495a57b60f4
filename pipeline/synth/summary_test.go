package synth

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummaryCountsByOperatorAndReason(t *testing.T) {
	trials := map[string]*Trial{}
	for _, tr := range []*Trial{
		{Key: "1", Kind: KindSingle, Operators: []string{"r1"}, Outcome: Released},
		{Key: "2", Kind: KindSingle, Operators: []string{"r1"}, Outcome: Capped, Reason: "the cap of 3 for function a.py::f is reached"},
		{Key: "3", Kind: KindSingle, Operators: []string{"a1"}, Outcome: Capped, Reason: "the cap of 2 for a1 in b.py::C.g is reached"},
		{Key: "4", Kind: KindSingle, Operators: []string{"a1"}, Outcome: Survived},
		{Key: "5", Kind: KindSingle, Operators: []string{"a1"}, Outcome: Survived, Reason: "no test executes it"},
		{Key: "6", Kind: KindCommit, Operators: []string{KindCommit}, Outcome: Refused, Reason: "pkg/a.py: f cannot be put back: it was changed again"},
		{Key: "7", Kind: KindModel, Operators: []string{KindModel}, Outcome: Refused, Reason: "the change changes nothing"},
		{Key: "8", Kind: KindComposed, Operators: []string{"r1", "a1"}, Outcome: Equivalent, Reason: "behaves like 1"},
		{Key: "9", Kind: KindSingle, Operators: []string{"v1"}, Outcome: Unverified, Reason: "the gold patch does not resolve it: 1 of 3 expected tests did not pass: a failed"},
		{Key: "10", Kind: KindSingle, Operators: []string{"v1"}, Outcome: Unverified, Reason: "the gold patch does not resolve it: 2 of 9 expected tests did not pass: b failed, c error"},
	} {
		trials[tr.Key] = tr
	}
	st := &factory{journal: &journal{}, states: []*repoState{{trials: trials}}, budget: newModelBudget(0, 0)}
	got := st.summary()
	if got.Candidates != 10 || got.Valid != 6 || got.Released != 1 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(map[Outcome]map[string]int{
		Capped:     {"the cap of 3 for a function is reached": 1, "the cap of 2 for an operator in a function is reached": 1},
		Survived:   {"no test executes it": 1},
		Unverified: {"the gold patch does not resolve it": 2},
		Refused:    {"f cannot be put back: it was changed again": 1, "the change changes nothing": 1},
	}, got.Reasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]*Tally{
		"r1":       {Candidates: 2, Valid: 2, Released: 1, Outcomes: map[Outcome]int{Released: 1, Capped: 1}},
		"a1":       {Candidates: 3, Valid: 1, Outcomes: map[Outcome]int{Capped: 1, Survived: 2}},
		KindCommit: {Candidates: 1, Outcomes: map[Outcome]int{Refused: 1}}, KindModel: {Candidates: 1, Outcomes: map[Outcome]int{Refused: 1}},
		KindComposed: {Candidates: 1, Valid: 1, Outcomes: map[Outcome]int{Equivalent: 1}},
		"v1":         {Candidates: 2, Valid: 2, Outcomes: map[Outcome]int{Unverified: 2}},
	}, got.Operators); diff != "" {
		t.Error(diff)
	}
}
