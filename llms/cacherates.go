package llms

// CacheRates holds a vendor's prices for tokens of its prompt cache, as multiples of its
// price for input.
type CacheRates struct {
	Read      float64
	Write     float64 // to keep for five minutes, or for the vendor's own time
	WriteHour float64 // to keep for an hour
	// Hour is true if the request asks the server to keep its prompt for an hour.
	// Otherwise WriteHour applies to no token.
	Hour bool
}

// CacheBiller is a Client that knows what its vendor charges for its prompt cache.
// A configured price wins over these rates.
type CacheBiller interface {
	CacheRates(r Request) CacheRates
}
