package llms

// CacheRates holds a vendor's prices for tokens of its prompt cache, as multiples of its
// price for input.
type CacheRates struct {
	Read      float64
	Write     float64 // tokens stored for five minutes, or for the vendor's default time
	WriteHour float64 // tokens stored for an hour
	// Hour is true if the request asks the server to store its prompt for an hour.
	// Otherwise WriteHour does not apply.
	Hour bool
}

// CacheBiller is a Client that knows what its vendor charges for its prompt cache.
// Configured prices take precedence over these rates.
type CacheBiller interface {
	CacheRates(r Request) CacheRates
}
