package env

import "context"

// Puller is a Driver whose images can be fetched before a sandbox needs them.
type Puller interface {
	Driver
	// Pull fetches an image; came is false where it is there already. told, unless
	// nil, hears from one goroutine how many bytes have come and how many are known
	// of; what has come stays when ctx ends, as far as the daemon keeps it.
	Pull(ctx context.Context, image string, told func(have, total int64)) (came bool, err error)
	// Ensure does of a Start of that image ("" = the driver's own) what fetches it,
	// where the settings allow that. It is no work where the image was seen before.
	Ensure(ctx context.Context, image string) error
}
