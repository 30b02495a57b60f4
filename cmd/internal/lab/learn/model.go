package learn

import (
	"math"
	"math/rand/v2"
)

// example is a choice between candidates.
type example struct {
	features [][]feature
	chosen   int
}

// model is a conditional logit model: it chooses candidate i with probability exp(s_i) / Σ exp(s_j),
// where s_i is the sum of the weights of i's features. It has 256 KiB of weights.
type model struct {
	weights [1 << 16]float32
}

// Settings of the training. They were chosen among a few by their results on 107 trajectories.
const (
	passes = 10
	rate   = 0.1 // of AdaGrad
	decay  = 0.2 // L2 penalty of a weight, at each use of its feature
)

// trainer is a model in training.
type trainer struct {
	model
	squares  [1 << 16]float32 // sums of squared gradients
	gradient [1 << 16]float64 // of one example; zero between examples
	touched  []feature        // features of the example, possibly repeated
}

// train fits a model by stochastic gradient descent with AdaGrad (Duchi, Hazan, Singer 2011), in an
// order of the examples that depends on seed.
func train(examples []example, seed uint64) *model {
	t := &trainer{}
	random := rand.New(rand.NewPCG(seed, 1))
	for range passes {
		for _, i := range random.Perm(len(examples)) {
			t.update(&examples[i])
		}
	}
	m := t.model
	return &m
}

func (t *trainer) update(e *example) {
	t.touched = t.touched[:0]
	for i, p := range t.probabilities(e.features) {
		if i == e.chosen {
			p--
		}
		for _, f := range e.features[i] {
			t.gradient[f] += p
		}
		t.touched = append(t.touched, e.features[i]...)
	}
	for _, f := range t.touched {
		if t.gradient[f] == 0 {
			continue
		}
		g := float32(t.gradient[f]) + decay*t.weights[f]
		t.gradient[f] = 0
		t.squares[f] += g * g
		if t.squares[f] > 0 {
			t.weights[f] -= rate * g / float32(math.Sqrt(float64(t.squares[f])))
		}
	}
}

func (m *model) probabilities(candidates [][]feature) []float64 {
	p := m.scores(candidates)
	highest := math.Inf(-1)
	for _, s := range p {
		highest = max(highest, s)
	}
	sum := 0.0
	for i := range p {
		p[i] = math.Exp(p[i] - highest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (m *model) scores(candidates [][]feature) []float64 {
	out := make([]float64, len(candidates))
	for i, list := range candidates {
		for _, f := range list {
			out[i] += float64(m.weights[f])
		}
	}
	return out
}
