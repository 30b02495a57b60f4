package env

import "context"

// Puller is a Driver that can fetch images before a sandbox needs them.
type Puller interface {
	Driver
	// Pull fetches an image. fetched is false if the image was already present. A single
	// goroutine calls progress, unless it is nil, with the number of bytes fetched so far
	// and the number known so far to be needed. If ctx ends, the daemon may keep the parts
	// that it has fetched.
	Pull(ctx context.Context, image string, progress func(have, total int64)) (fetched bool, err error)
	// Ensure makes image ("" = the driver's default) available as Start would, and
	// fetches it if the settings allow that. It returns at once if the driver has
	// already seen the image.
	Ensure(ctx context.Context, image string) error
}
