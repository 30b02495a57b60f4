package mock

import (
	"fmt"
	"math/big"
	"strconv"
)

// Price is what a model costs, USD per million tokens. What is not set follows the
// vendor: the Messages API takes a tenth of input for a token read from its prompt
// cache, 1.25 times input for one written for five minutes and twice input for one
// written for an hour; chat completions take input for reads and 1.25 times input
// for writes.
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

// bill is the cost of one answer in USD, exactly.
func (p Price) bill(u Usage, messages bool) *big.Rat {
	read := big.NewRat(1, 1)
	if messages {
		read = big.NewRat(1, 10)
	}
	of := func(tokens int64, price *float64, times *big.Rat) *big.Rat {
		rate := exactly(p.Input)
		if price == nil {
			rate.Mul(rate, times)
		} else {
			rate = exactly(*price)
		}
		return rate.Mul(rate, new(big.Rat).SetFrac64(tokens, 1_000_000))
	}
	sum := of(u.Prompt-u.Cached-u.CacheWrite, &p.Input, nil)
	sum.Add(sum, of(u.Cached, p.Cached, read))
	sum.Add(sum, of(u.CacheWrite-u.CacheWrite1h, p.CacheWrite, big.NewRat(5, 4)))
	sum.Add(sum, of(u.CacheWrite1h, p.CacheWrite1h, big.NewRat(2, 1)))
	return sum.Add(sum, of(u.Completion, &p.Output, nil))
}

// price fills in what the vendor bills for an exchange.
func (h *Handler) price(ex *Exchange, req conversation) {
	_, messages := req.(messagesRequest)
	for _, p := range h.script.Prices {
		if p.Model == ex.Model {
			ex.Billed = Dollars{p.bill(ex.Usage, messages)}
			return
		}
	}
}

// exactly is a price as it is written.
func exactly(price float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(price, 'f', -1, 64))
	return r
}

// Dollars is a sum of money without rounding; the zero value is nothing.
type Dollars struct{ exact *big.Rat }

func (d *Dollars) add(more *big.Rat) {
	if more == nil {
		return
	}
	sum := new(big.Rat).Set(more)
	if d.exact != nil {
		sum.Add(sum, d.exact)
	}
	d.exact = sum
}

// USD is the nearest float64.
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
