package mock

import (
	"fmt"
	"math/big"
	"strconv"
)

// Price is the price of a model in USD per million tokens. Cache prices that are not set
// depend on Input. In the Messages API, reading a token from the prompt cache costs a tenth
// of Input, writing it for five minutes 1.25 times Input, and writing it for an hour twice
// Input. In chat completions, reads cost as much as Input, and writes as much as in the
// Messages API.
type Price struct {
	Model        string   `yaml:"model"`
	Input        float64  `yaml:"input"`
	Output       float64  `yaml:"output"`
	Cached       *float64 `yaml:"cached"`
	CacheWrite   *float64 `yaml:"cache_write"`
	CacheWrite1h *float64 `yaml:"cache_write_1h"`
}

func (p Price) check() error {
	for _, v := range []*float64{&p.Input, &p.Output, p.Cached, p.CacheWrite, p.CacheWrite1h} {
		if v != nil && !(*v >= 0) {
			return fmt.Errorf("the price of model %q cannot be negative", p.Model)
		}
	}
	return nil
}

// bill returns the exact cost of one answer in USD.
func (p Price) bill(u Usage, messages bool) *big.Rat {
	read := big.NewRat(1, 1)
	if messages {
		read = big.NewRat(1, 10)
	}
	cost := func(tokens int64, price *float64, times *big.Rat) *big.Rat {
		rate := ratOf(p.Input)
		if price == nil {
			rate.Mul(rate, times)
		} else {
			rate = ratOf(*price)
		}
		return rate.Mul(rate, new(big.Rat).SetFrac64(tokens, 1_000_000))
	}
	sum := cost(u.Prompt-u.Cached-u.CacheWrite, &p.Input, nil)
	sum.Add(sum, cost(u.Cached, p.Cached, read))
	sum.Add(sum, cost(u.CacheWrite-u.CacheWrite1h, p.CacheWrite, big.NewRat(5, 4)))
	sum.Add(sum, cost(u.CacheWrite1h, p.CacheWrite1h, big.NewRat(2, 1)))
	return sum.Add(sum, cost(u.Completion, &p.Output, nil))
}

// setBilled sets the amount that the vendor bills for an exchange.
func (h *Handler) setBilled(ex *Exchange, req conversation) {
	_, messages := req.(messagesRequest)
	for _, p := range h.script.Prices {
		if p.Model == ex.Model {
			ex.Billed = Dollars{p.bill(ex.Usage, messages)}
			return
		}
	}
}

// ratOf returns the exact value of a price in decimal notation.
func ratOf(price float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(price, 'f', -1, 64))
	return r
}

// Dollars is an amount of money without rounding. The zero value is 0.
type Dollars struct{ exact *big.Rat }

func (d *Dollars) add(amount *big.Rat) {
	if amount == nil {
		return
	}
	sum := new(big.Rat).Set(amount)
	if d.exact != nil {
		sum.Add(sum, d.exact)
	}
	d.exact = sum
}

// USD returns the nearest float64.
func (d Dollars) USD() float64 {
	if d.exact == nil {
		return 0
	}
	f, _ := d.exact.Float64()
	return f
}

// MarshalJSON writes the amount as a number.
func (d Dollars) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, d.USD(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number.
func (d *Dollars) UnmarshalJSON(raw []byte) error {
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok {
		return fmt.Errorf("%s is not an amount of money", raw)
	}
	d.exact = r
	return nil
}
