package llms

// CacheRates are what a vendor charges for tokens of its prompt cache, as
// multiples of its price of input.
type CacheRates struct {
	Read      float64
	Write     float64 // written for five minutes, or for as long as the vendor keeps them
	WriteHour float64 // written for an hour
	// Hour: the request asks the server to keep its prompt for an hour. Without it
	// no token is written at WriteHour.
	Hour bool
}

// CacheBiller is a Client that knows what its vendor charges for its prompt cache.
// A configured price wins over these rates.
type CacheBiller interface {
	CacheRates(r Request) CacheRates
}
