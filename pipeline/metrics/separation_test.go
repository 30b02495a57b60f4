package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestSeparations(t *testing.T) {
	var s Separator
	if s.Separations() != nil {
		t.Error("no episodes are separated")
	}
	// By hand: of the pairs (first, second), 3 > 1, 3 > 2, 2 > 1 and 2 = 2, so the AUC is 3.5/4.
	for i, v := range []float64{3, 2} {
		s.Add(0, fmt.Sprint(i), map[string]float64{"x": v, "same": 1, "first only": 1})
	}
	for i, v := range []float64{1, 2} {
		s.Add(1, fmt.Sprint(i), map[string]float64{"x": v, "same": 1})
	}
	got := s.Separations()
	if len(got) != 2 || got[0].Column != "x" || got[0].AUC != 3.5/4 || got[0].Mean != [2]float64{2.5, 1.5} || got[0].N != [2]int{2, 2} {
		t.Fatalf("%+v", got)
	}
	// Task 0 alone gives 3 > 1 and AUC 1, task 1 alone 2 = 2 and AUC 0.5.
	if *got[0].Low != 0.5 || *got[0].High != 1 {
		t.Errorf("interval %v to %v", *got[0].Low, *got[0].High)
	}
	if got[1].AUC != 0.5 || *got[1].Low != 0.5 || *got[1].High != 0.5 {
		t.Errorf("%+v", got[1])
	}
}

// Two groups of the same kind differ in no column, and the groups' order only mirrors the AUC.
func TestSeparationIsSymmetric(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s, mirrored Separator
	for i := range 400 {
		v, task := math.Floor(r.Float64()*20), fmt.Sprint(r.IntN(60))
		s.Add(i%2, task, map[string]float64{"noise": v, "shifted": v + float64(i%2)*3})
		mirrored.Add(1-i%2, task, map[string]float64{"noise": v, "shifted": v + float64(i%2)*3})
	}
	a, b := s.Separations(), mirrored.Separations()
	for i := range a {
		if math.Abs(a[i].AUC-(1-b[i].AUC)) > 1e-12 || *a[i].Low > a[i].AUC || *a[i].High < a[i].AUC {
			t.Errorf("%+v, mirrored %+v", a[i], b[i])
		}
	}
	if a[0].Column != "shifted" || *a[0].High >= 0.5 || *a[1].Low > 0.5 || *a[1].High < 0.5 {
		t.Errorf("%+v", a)
	}
}
